/* SPDX-License-Identifier: Apache-2.0 */
/* A bar chart of the operator types that take most of the time, beside the figures it shows: a
 * drawing that holds the chart's place, and the chart, which points at cells of "Summary" and
 * carries their values for readers that do not look there. */
#include <inttypes.h>
#include <stdio.h>

#include "export/xlsx.h"

enum { BARS = 12 };

static const char drawing[] =
    "<xdr:wsDr xmlns:xdr=\"http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing\" "
    "xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\"><xdr:twoCellAnchor>"
    "<xdr:from><xdr:col>6</xdr:col><xdr:colOff>200000</xdr:colOff><xdr:row>1</xdr:row>"
    "<xdr:rowOff>0</xdr:rowOff></xdr:from><xdr:to><xdr:col>16</xdr:col><xdr:colOff>0</xdr:colOff>"
    "<xdr:row>23</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:to><xdr:graphicFrame macro=\"\">"
    "<xdr:nvGraphicFramePr><xdr:cNvPr id=\"2\" name=\"Operators by time\"/>"
    "<xdr:cNvGraphicFramePr/></xdr:nvGraphicFramePr><xdr:xfrm><a:off x=\"0\" y=\"0\"/>"
    "<a:ext cx=\"0\" cy=\"0\"/></xdr:xfrm><a:graphic><a:graphicData "
    "uri=\"http://schemas.openxmlformats.org/drawingml/2006/chart\"><c:chart "
    "xmlns:c=\"http://schemas.openxmlformats.org/drawingml/2006/chart\" "
    "xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\" "
    "r:id=\"rId1\"/></a:graphicData></a:graphic></xdr:graphicFrame><xdr:clientData/>"
    "</xdr:twoCellAnchor></xdr:wsDr>";

static const char chart_begin[] =
    "<c:chartSpace xmlns:c=\"http://schemas.openxmlformats.org/drawingml/2006/chart\" "
    "xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\"><c:chart><c:title><c:tx>"
    "<c:rich><a:bodyPr/><a:p><a:r><a:t>Operators by time (ms per run)</a:t></a:r></a:p></c:rich>"
    "</c:tx><c:overlay val=\"0\"/></c:title><c:autoTitleDeleted val=\"0\"/><c:plotArea><c:layout/>"
    "<c:barChart><c:barDir val=\"bar\"/><c:grouping val=\"clustered\"/>"
    "<c:varyColors val=\"0\"/><c:ser><c:idx val=\"0\"/><c:order val=\"0\"/>";

/* The first row on top. */
static const char chart_end[] =
    "</c:ser><c:gapWidth val=\"40\"/><c:axId val=\"1001\"/><c:axId val=\"1002\"/></c:barChart>"
    "<c:catAx><c:axId val=\"1001\"/><c:scaling><c:orientation val=\"maxMin\"/></c:scaling>"
    "<c:delete val=\"0\"/><c:axPos val=\"l\"/><c:numFmt formatCode=\"General\" "
    "sourceLinked=\"0\"/><c:majorTickMark val=\"none\"/><c:minorTickMark val=\"none\"/>"
    "<c:tickLblPos val=\"low\"/><c:crossAx val=\"1002\"/><c:crosses val=\"autoZero\"/></c:catAx>"
    "<c:valAx><c:axId val=\"1002\"/><c:scaling><c:orientation val=\"minMax\"/></c:scaling>"
    "<c:delete val=\"0\"/><c:axPos val=\"b\"/><c:majorGridlines/><c:numFmt "
    "formatCode=\"General\" sourceLinked=\"0\"/><c:majorTickMark val=\"none\"/>"
    "<c:minorTickMark val=\"none\"/><c:tickLblPos val=\"nextTo\"/><c:crossAx val=\"1001\"/>"
    "<c:crosses val=\"max\"/></c:valAx></c:plotArea><c:plotVisOnly val=\"1\"/></c:chart>"
    "</c:chartSpace>";

/* <c:f> of a column of the table, and how many points there are. */
static void put_range(sn_xlsx *x, char column, size_t n, const char *cache)
{
    char text[160];
    snprintf(text, sizeof text,
             "<c:f>Summary!$%c$%" PRIu32 ":$%c$%" PRIu32 "</c:f><c:%s><c:ptCount val=\"%zu\"/>",
             column, x->first_op_row, column, x->first_op_row + (uint32_t)n - 1, cache, n);
    sn_put(&x->w, text);
}

static void put_series(sn_xlsx *x, size_t n)
{
    char text[64], number[32];
    sn_put(&x->w, "<c:tx><c:v>mean (ms)</c:v></c:tx><c:spPr><a:solidFill><a:srgbClr "
                  "val=\"3D85C6\"/></a:solidFill></c:spPr><c:invertIfNegative val=\"0\"/>"
                  "<c:cat><c:strRef>");
    put_range(x, 'A', n, "strCache");
    for (size_t i = 0; i < n; i++) {
        snprintf(text, sizeof text, "<c:pt idx=\"%zu\"><c:v>", i);
        sn_put(&x->w, text);
        sn_xlsx_escape(x, x->ops.rows.data[i].name);
        sn_put(&x->w, "</c:v></c:pt>");
    }
    sn_put(&x->w, "</c:strCache></c:strRef></c:cat><c:val><c:numRef>");
    put_range(x, 'C', n, "numCache");
    for (size_t i = 0; i < n; i++) {
        snprintf(text, sizeof text, "<c:pt idx=\"%zu\"><c:v>%s</c:v></c:pt>", i,
                 sn_sheet_number(number, x->ops.rows.data[i].mean_ns / 1e6));
        sn_put(&x->w, text);
    }
    sn_put(&x->w, "</c:numCache></c:numRef></c:val>");
}

void sn_xlsx_put_chart(sn_xlsx *x)
{
    const size_t n = x->ops.rows.n < BARS ? x->ops.rows.n : BARS;
    sn_xlsx_open(x, "xl/drawings/drawing1.xml");
    sn_put(&x->w, drawing);
    sn_xlsx_close(x);
    sn_xlsx_open(x, "xl/charts/chart1.xml");
    sn_put(&x->w, chart_begin);
    put_series(x, n);
    sn_put(&x->w, chart_end);
    sn_xlsx_close(x);
}
