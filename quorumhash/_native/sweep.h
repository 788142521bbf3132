/* A sweep of the consensus ADMM row by row: what the C files share. quorumhash/sweeps.py says what a sweep is. */
#ifndef QUORUMHASH_SWEEP_H
#define QUORUMHASH_SWEEP_H

#include <stddef.h>

/* Matrices are (n_rows, n_columns), row after row, and none lies in another. */
typedef struct {
    size_t n_rows, n_columns, n_views;
    double threshold; /* by which errors are shortened */
    double share;     /* of the voices' moves that Khat takes */
    double scale;     /* of the new duals */
    int by_rows;      /* whether an error's size is that of its row, else of each entry */
    int is_single;    /* whether views are float, else double */
    double *kernel, *shown;          /* Khat, and Khat - dual_0; overwritten by the new ones, as duals are */
    const double *low_rank, *pulled; /* how far the low-rank voice and the targets move Khat; pulled NULL: they do not */
    double **duals;                  /* (n_views) */
    const void **views;              /* (n_views) */
    double *room;                    /* (qh_sweep_room) for a row in work */
    double residual, error;          /* told back: the largest residual; the size of all errors before */
} qh_sweep;

typedef void qh_sweep_rows(qh_sweep *sweep);

qh_sweep_rows qh_sweep_portable, qh_sweep_avx2, qh_sweep_avx512; /* the portable one is NEON where there is NEON */

/* Numbers. */
size_t qh_sweep_room(size_t n_columns, size_t n_views);

#endif
