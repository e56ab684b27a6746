/* SPDX-License-Identifier: Apache-2.0 */
/* A list under a lock: a binding enters it once, at its first recorded run. */
#include "exec/pins.h"

struct sn_pins {
    sn_allocator *alloc;
    pthread_mutex_t lock;
    SN_VEC(sn_binding *) list;
};

sonde_status sn_pins_create(sn_pins **pins, sn_allocator *alloc, sonde_error *err)
{
    sn_pins *p = sn_alloc_zero(alloc, sizeof *p);
    if (!p)
        return sn_fail_memory(err, sizeof *p);
    p->alloc = alloc;
    pthread_mutex_init(&p->lock, NULL);
    *pins = p;
    return SONDE_OK;
}

void sn_pins_free(sn_pins *p)
{
    if (!p)
        return;
    sn_pins_clear(p);
    sn_vec_free(&p->list, p->alloc);
    pthread_mutex_destroy(&p->lock);
    sn_free(p->alloc, p, sizeof *p);
}

static sn_program *root_program(const sn_binding *b)
{
    sn_program *root = b->program;
    while (root->parent)
        root = root->parent;
    return root;
}

void sn_pin_binding(sn_pins *p, sn_binding *b)
{
    pthread_mutex_lock(&p->lock);
    if (!atomic_load_explicit(&b->pinned, memory_order_relaxed) &&
        sn_vec_push(&p->list, p->alloc, b)) {
        sn_program_ref(root_program(b));
        sn_binding_ref(b);
        atomic_store_explicit(&b->pinned, true, memory_order_release);
    }
    pthread_mutex_unlock(&p->lock);
}

sn_binding *sn_pins_find(sn_pins *p, uint32_t id)
{
    sn_binding *found = NULL;
    pthread_mutex_lock(&p->lock); /* a run on another thread may be adding to the list */
    for (size_t i = 0; i < p->list.n && !found; i++)
        if (p->list.data[i]->id == id)
            found = p->list.data[i];
    pthread_mutex_unlock(&p->lock);
    return found;
}

void sn_pins_clear(sn_pins *p)
{
    for (size_t i = 0; i < p->list.n; i++) {
        sn_binding *b = p->list.data[i];
        sn_program *root = root_program(b);
        atomic_store_explicit(&b->pinned, false, memory_order_release);
        sn_binding_unref(b);
        sn_program_unref(root);
    }
    p->list.n = 0;
}

void sn_pins_lock(sn_pins *p)
{
    pthread_mutex_lock(&p->lock);
}

void sn_pins_unlock(sn_pins *p)
{
    pthread_mutex_unlock(&p->lock);
}
