/* Accesses to pixels: what the specification leaves undefined (cl_driver/passes/check/pixels.py says where).
 */
#include <CL/cl.h>
#include <math.h>

#include "check/shadow.h"

static void tell(struct cld_kcheck_thread *thread, struct report *report, enum finding finding) {
    report->finding = finding;
    report->place = place_of(thread->launch, thread->group_index, thread->item);
    report_add(thread, report);
}

/* What of a sampler does not go with an access; NULL: nothing. */
static const char *misfit(uint32_t bits, uint64_t sampler) {
    enum { REPEATING = 3 };
    bool is_normalized = sampler & CLD_SAMPLER_NORMALIZED;
    bool repeats = (sampler >> CLD_SAMPLER_ADDRESS_SHIFT & 7) >= REPEATING;
    if (!(bits & CLD_CHECK_PLACES) && is_normalized)
        return "a sampler of normalized coordinates, but integer ones";
    if (!(bits & CLD_CHECK_PLACES) && sampler & CLD_SAMPLER_LINEAR)
        return "a sampler of linear filtering, but integer coordinates";
    if (repeats && !is_normalized)
        return "a sampler of a repeating address mode, but coordinates that are not normalized";
    if (!(bits & CLD_CHECK_NUMBERS) && sampler & CLD_SAMPLER_LINEAR)
        return "a sampler of linear filtering, of an image of integers";
    return NULL;
}

/* The same of the image's format. Of formats of extensions nothing is said. */
static const char *mismatch(uint32_t bits, uint32_t type) {
    bool are_integers = type >= CL_SIGNED_INT8 && type <= CL_UNSIGNED_INT32;
    bool are_numbers =
        (type >= CL_SNORM_INT8 && type <= CL_UNORM_INT_101010) || type == CL_HALF_FLOAT || type == CL_FLOAT;
    if (bits & CLD_CHECK_NUMBERS && are_integers)
        return "numbers of floating point, of an image of integers";
    if (!(bits & CLD_CHECK_NUMBERS) && are_numbers)
        return "integers, of an image of normalized or floating-point numbers";
    return NULL;
}

/* Whether a pixel that counts is outside, of so many in that direction. Linear filtering takes two pixels; of
 * a weight of 0 the other one does not count. */
static bool is_beyond(double place, int32_t size, bool is_linear) {
    double first = is_linear ? place - 0.5 : floor(place), last = size - 1;
    return !(first >= 0 && first <= last);
}

void cld_kcheck_image(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                      const struct cld_image_desc *image, double x, double y, double z, uint64_t more) {
    uint32_t bits = site->bytes, dims = bits & 255;
    bool is_sampled = bits & CLD_CHECK_SAMPLED;
    uint32_t used = dims + (bits & CLD_CHECK_LAYERS ? 1 : 0);
    used = used < 3 ? used : 3;
    const double at[3] = {x, y, z};
    int32_t sizes[3] = {image->width, image->height, image->depth};
    struct report report = {.site = site, .sizes = {1, 1, 1}, .sampler = more};
    if ((report.why = mismatch(bits, image->channel_data_type)))
        tell(thread, &report, WRONG_PIXEL);
    if (is_sampled && (report.why = misfit(bits, more)))
        tell(thread, &report, WRONG_SAMPLER);
    if (!is_sampled && bits & CLD_CHECK_LEVEL) {
        if (more >= image->levels) {
            report.sizes[0] = (int32_t)image->levels;
            tell(thread, &report, NO_LEVEL);
            return;
        }
        const struct cld_image_level *level = &image->level[more];
        sizes[0] = level->width, sizes[1] = level->height, sizes[2] = level->depth;
    }
    bool is_finite = true, is_outside = false;
    bool is_linear = is_sampled && more & CLD_SAMPLER_LINEAR;
    for (uint32_t i = 0; i < used; i++) {
        bool is_layer = i >= dims;
        report.coordinates[i] = at[i];
        report.sizes[i] = is_layer ? image->array_size : sizes[i];
        is_finite &= isfinite(at[i]);
        if (is_layer && is_sampled) /* clamped */
            continue;
        double place = is_sampled && more & CLD_SAMPLER_NORMALIZED ? at[i] * sizes[i] : at[i];
        is_outside |= is_beyond(place, report.sizes[i], is_linear);
    }
    bool is_any_level = is_sampled && bits & CLD_CHECK_LEVEL && image->levels > 1;
    bool may_leave = is_sampled && more >> CLD_SAMPLER_ADDRESS_SHIFT & 7;
    if (!is_finite)
        tell(thread, &report, NO_PLACE);
    else if (is_outside && !may_leave && !is_any_level)
        tell(thread, &report, OUTSIDE_IMAGE);
}
