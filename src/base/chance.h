/* SPDX-License-Identifier: Apache-2.0 */
/* Normal and Student's distribution, to the precision that tests of significance need. */
#ifndef SN_BASE_CHANCE_H
#define SN_BASE_CHANCE_H

double sn_chance_density(double z);  /* of a normal variable */
double sn_chance_tail(double z);     /* of a normal variable above z */
double sn_chance_quantile(double p); /* the z below which a normal variable is with chance p */
double sn_chance_of_t(double t, double freedom); /* the z that is as likely as this t, 0 or more */
double sn_chance_t_of(double z, double freedom); /* the inverse: the t that is as likely as z */

#endif
