// Functions of f64 on an H200; a NaN of their results stands for any.
#pragma once

namespace tile::h200 {

double exponential(double x);
double binary_exponential(double x);
double logarithm(double x);
double binary_logarithm(double x);
double sine(double x);
double cosine(double x);
double tangent_of_angle(double x);
double hyperbolic_sine(double x);
double hyperbolic_cosine(double x);
double hyperbolic_tangent(double x);
double inverse_root(double x);
double power(double x, double y);
double angle_between(double y, double x);

}  // namespace tile::h200
