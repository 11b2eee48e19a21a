/* Which machines have which part of a memory object: its segments, one after the other, which cover it. */
#include <stdlib.h>

#include "cluster/internal.h"
#include "memory/mem.h"

/* More of them are not worth their time: then commands are taken to use all. */
enum { MOST_SEGMENTS = 64 };

bool cld_segments_begin(struct cld_copies *copies, size_t size, bool has_contents) {
    struct cld_segment *segment = calloc(1, sizeof *segment);
    if (!segment)
        return false;
    *segment = (struct cld_segment){.end = size, .is_here = true, .valid = has_contents ? 0 : UINT64_MAX};
    copies->segments = segment;
    copies->segment_count = 1;
    return true;
}

void cld_segments_free(struct cld_copies *copies) {
    while (copies->segments) {
        struct cld_segment *segment = copies->segments;
        copies->segments = segment->next;
        free(segment);
    }
}

bool cld_segments_are_many(const struct cld_copies *copies) {
    return copies->segment_count > MOST_SEGMENTS;
}

/* Has a segment begin there, where one does not yet; NULL: no memory. */
static struct cld_segment *cut_at(struct cld_copies *copies, struct cld_segment *segment, size_t at) {
    while (segment->end <= at)
        segment = segment->next;
    if (segment->begin == at)
        return segment;
    struct cld_segment *rest = malloc(sizeof *rest);
    if (!rest)
        return NULL;
    *rest = *segment;
    rest->begin = at;
    segment->end = at;
    segment->next = rest;
    copies->segment_count++;
    return rest;
}

struct cld_segment *cld_segments_in(struct cld_copies *copies, size_t begin, size_t end) {
    struct cld_segment *first = cut_at(copies, copies->segments, begin);
    bool is_cut = first && (end == copies->mem->size || cut_at(copies, first, end));
    return is_cut ? first : NULL;
}

/* Segments that something is under way for stay as they are: it ends with the range that it began with. */
static bool is_one_with_next(const struct cld_segment *segment) {
    const struct cld_segment *next = segment->next;
    return next && next->valid == segment->valid && next->is_here == segment->is_here && !segment->users &&
           !next->users && !segment->coming && !next->coming;
}

void cld_segments_join(struct cld_copies *copies) {
    for (struct cld_segment *segment = copies->segments; segment; segment = segment->next)
        while (is_one_with_next(segment)) {
            struct cld_segment *next = segment->next;
            segment->end = next->end;
            segment->next = next->next;
            copies->segment_count--;
            free(next);
        }
}
