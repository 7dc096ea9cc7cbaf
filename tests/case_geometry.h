/* What the shapes of a case mean: groups, their size, the shapes of statistics and of weight and bias. */
#ifndef CASE_GEOMETRY_H
#define CASE_GEOMETRY_H

#include "case_file.h"

typedef struct case_geometry {
    int valid;    /* 0: the shapes do not belong together (cases that expect an error) */
    int trailing; /* the reduced axes are the last ones: rows of level 1 */
    int64_t groups, group_size;
    case_shape statistic; /* one element per group */
    case_shape affine;    /* weight and bias */
} case_geometry;

case_geometry case_geometry_of(const layer_case *item);

/* The shape of weight (or bias): what the case says, else the geometry's where the count agrees, else [count]. */
case_shape case_affine_shape(const layer_case *item, const case_geometry *geometry, enum case_slot slot);

int64_t case_shape_count(const case_shape *shape);

#endif
