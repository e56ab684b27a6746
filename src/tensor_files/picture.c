/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures to RGB bytes. What a file is, its first bytes say, not its name. JPEG and PNG go through
 * the libraries made for them where the build has them; PPM and PGM are read here. A picture may
 * not have more pixels than its bytes can justify. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tensor_files/formats.h"

#ifdef SONDE_HAVE_JPEG
#include <jpeglib.h>
#endif
#ifdef SONDE_HAVE_PNG
#include <png.h>
#endif

#define MAX_PIXELS          ((uint64_t)64 << 20)
#define FREE_PIXELS         ((uint64_t)1 << 20)
#define MAX_PIXELS_PER_BYTE 8192u /* one-bit pixels in deflate's best case */

void sn_picture_free(sn_picture *p, sn_allocator *alloc)
{
    sn_free(alloc, p->rgb, p->bytes);
    *p = (sn_picture){0};
}

static sonde_status make_room(sn_picture *p, uint64_t width, uint64_t height, size_t file_bytes,
                              sn_allocator *alloc, sonde_error *err)
{
    if (width == 0 || height == 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the image is empty");
    if (width > MAX_PIXELS || height > MAX_PIXELS || width * height > MAX_PIXELS ||
        width * height / MAX_PIXELS_PER_BYTE > file_bytes + FREE_PIXELS / MAX_PIXELS_PER_BYTE)
        return sn_fail(err, SONDE_LIMIT, "the image has %llu x %llu pixels, which is too many",
                       (unsigned long long)width, (unsigned long long)height);
    p->width = (int)width;
    p->height = (int)height;
    p->bytes = (size_t)(width * height * 3);
    p->rgb = sn_alloc(alloc, p->bytes);
    return p->rgb ? SONDE_OK : sn_fail_memory(err, p->bytes);
}

/* ---- PPM, PGM ---- */

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

/* A number of the header; comments run from # to the end of the line. */
static bool header_number(cursor *c, uint64_t *out)
{
    uint64_t v = 0;
    for (;;) {
        while (c->at < c->end && strchr(" \t\r\n\v\f", *c->at) && *c->at)
            c->at++;
        if (c->at == c->end || *c->at != '#')
            break;
        while (c->at < c->end && *c->at != '\n')
            c->at++;
    }
    if (c->at == c->end || *c->at < '0' || *c->at > '9')
        return false;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        v = v * 10 + (uint64_t)(*c->at - '0');
        if (v > UINT32_MAX)
            return false;
    }
    *out = v;
    return true;
}

static sonde_status decode_ppm(const uint8_t *data, size_t bytes, sn_allocator *alloc,
                               sn_picture *p, sonde_error *err)
{
    cursor c = {data + 2, data + bytes};
    uint64_t width, height, most;
    size_t channels = data[1] == '6' ? 3 : 1;
    if (!header_number(&c, &width) || !header_number(&c, &height) || !header_number(&c, &most) ||
        c.at == c.end || most == 0 || most > 65535)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the PPM header is invalid");
    c.at++; /* one white space */
    size_t depth = most > 255 ? 2 : 1;
    SN_TRY(make_room(p, width, height, bytes, alloc, err));
    size_t pixels = p->bytes / 3;
    if ((size_t)(c.end - c.at) / (channels * depth) < pixels)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the image is truncated");
    for (size_t i = 0; i < p->bytes; i++) {
        size_t from = channels == 3 ? i : i / 3;
        uint64_t v = depth == 2 ? (uint64_t)c.at[2 * from] << 8 | c.at[2 * from + 1] : c.at[from];
        v = (v * 255 + most / 2) / most;
        p->rgb[i] = v > 255 ? 255 : (uint8_t)v;
    }
    return SONDE_OK;
}

/* ---- JPEG ---- */

#ifdef SONDE_HAVE_JPEG
typedef struct jpeg_failure {
    struct jpeg_error_mgr base;
    jmp_buf back;
    char message[JMSG_LENGTH_MAX];
} jpeg_failure;

static void jpeg_fail(j_common_ptr info)
{
    jpeg_failure *f = (jpeg_failure *)info->err;
    info->err->format_message(info, f->message);
    longjmp(f->back, 1);
}

static void jpeg_silent(j_common_ptr info, int level)
{
    (void)info, (void)level;
}

static sonde_status decode_jpeg(const uint8_t *data, size_t bytes, sn_allocator *alloc,
                                sn_picture *p, sonde_error *err)
{
    struct jpeg_decompress_struct info = {0};
    jpeg_failure failure;
    info.err = jpeg_std_error(&failure.base);
    failure.base.error_exit = jpeg_fail;
    failure.base.emit_message = jpeg_silent;
    if (setjmp(failure.back)) {
        jpeg_destroy_decompress(&info);
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "cannot read the JPEG image: %s",
                       failure.message);
    }
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, data, bytes);
    jpeg_read_header(&info, TRUE);
    sonde_status st = make_room(p, info.image_width, info.image_height, bytes, alloc, err);
    if (st == SONDE_OK) {
        info.out_color_space =
            JCS_RGB; /* the library refuses, by jpeg_fail, what it cannot convert */
        jpeg_start_decompress(&info);
        while (info.output_scanline < info.output_height) {
            JSAMPROW row = p->rgb + (size_t)info.output_scanline * info.output_width * 3;
            jpeg_read_scanlines(&info, &row, 1);
        }
        jpeg_finish_decompress(&info);
    }
    jpeg_destroy_decompress(&info);
    return st;
}
#else
static sonde_status decode_jpeg(const uint8_t *data, size_t bytes, sn_allocator *alloc,
                                sn_picture *p, sonde_error *err)
{
    (void)data, (void)bytes, (void)alloc, (void)p;
    return sn_fail(err, SONDE_UNSUPPORTED,
                   "this build has no libjpeg, so JPEG files cannot be read");
}
#endif

/* ---- PNG ---- */

#ifdef SONDE_HAVE_PNG
static sonde_status decode_png(const uint8_t *data, size_t bytes, sn_allocator *alloc,
                               sn_picture *p, sonde_error *err)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, data, bytes))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "cannot read the PNG image: %s", image.message);
    sonde_status st = make_room(p, image.width, image.height, bytes, alloc, err);
    if (st != SONDE_OK) {
        png_image_free(&image);
        return st;
    }
    /* Read with alpha, then drop it: the picture as it is, not painted over some background. */
    size_t pixels = p->bytes / 3, rgba_bytes = pixels * 4;
    uint8_t *rgba = sn_alloc(alloc, rgba_bytes);
    if (!rgba) {
        png_image_free(&image);
        return sn_fail_memory(err, rgba_bytes);
    }
    image.format = PNG_FORMAT_RGBA;
    if (!png_image_finish_read(&image, NULL, rgba, 0, NULL))
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "cannot read the PNG image: %s", image.message);
    for (size_t i = 0; i < pixels && st == SONDE_OK; i++)
        memcpy(p->rgb + 3 * i, rgba + 4 * i, 3);
    png_image_free(&image);
    sn_free(alloc, rgba, rgba_bytes);
    return st;
}
#else
static sonde_status decode_png(const uint8_t *data, size_t bytes, sn_allocator *alloc,
                               sn_picture *p, sonde_error *err)
{
    (void)data, (void)bytes, (void)alloc, (void)p;
    return sn_fail(err, SONDE_UNSUPPORTED, "this build has no libpng, so PNG files cannot be read");
}
#endif

bool sn_is_image_path(const char *path)
{
    static const char *const suffixes[] = {".jpg", ".jpeg", ".png", ".ppm", ".pgm"};
    const char *dot = strrchr(path, '.');
    for (size_t k = 0; dot && k < sizeof suffixes / sizeof suffixes[0]; k++)
        if (strcasecmp(dot, suffixes[k]) == 0)
            return true;
    return false;
}

sonde_status sn_picture_decode(const uint8_t *data, size_t bytes, sn_allocator *alloc,
                               sn_picture *p, sonde_error *err)
{
    sonde_status st;
    *p = (sn_picture){0};
    if (bytes > 3 && data[0] == 0xFF && data[1] == 0xD8)
        st = decode_jpeg(data, bytes, alloc, p, err);
    else if (bytes > 8 && memcmp(data, "\x89PNG", 4) == 0)
        st = decode_png(data, bytes, alloc, p, err);
    else if (bytes > 3 && data[0] == 'P' && (data[1] == '5' || data[1] == '6'))
        st = decode_ppm(data, bytes, alloc, p, err);
    else
        st = sn_fail(err, SONDE_UNSUPPORTED, "this is not a JPEG, PNG, PPM or PGM image");
    if (st != SONDE_OK)
        sn_picture_free(p, alloc);
    return st;
}
