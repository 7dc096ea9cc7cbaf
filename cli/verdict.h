/* What is found about one element of Y. */
#ifndef LNORM_CLI_VERDICT_H
#define LNORM_CLI_VERDICT_H

typedef enum finding {
    MEASURED,
    NAN_DUE,       /* the result is undefined, and Y says so by a NaN or an infinity */
    NAN_MISSING,   /* the result is undefined, and Y has a number */
    NAN_UNEXPECTED /* the result is a number, and Y has a NaN, or an infinity that is not due */
} finding;

/* Errors beyond this are not told apart, so that their sum stays finite. */
#define MOST_ULPS 1e290

typedef struct verdict {
    finding finding; /* nothing else is set unless MEASURED */
    double ulps;     /* |Y - y| in ulps of max(|y|, |weight|, |weight*xhat|, |bias|) */
    double own_ulps; /* in ulps of y */
    int correct;     /* Y is y, rounded to nearest */
} verdict;

#endif
