// Pictures as Python hands them over: numpy arrays and format names in, an ImageView out.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

#include "kernels/dtype.hpp"
#include "kernels/image.hpp"

namespace compass_edge {

// The value called `text`, or an error that lists the names there are.
template <class Value, std::size_t Count>
Value parse_name(const std::string& what, const std::string& text,
                 const std::pair<const char*, Value> (&names)[Count]) {
    std::string list;
    for (const auto& [name, value] : names) {
        if (text == name) return value;
        list += (list.empty() ? "" : ", ") + std::string(name);
    }
    throw std::invalid_argument("Expected a " + what + " of " + list + ", got '" + text + "'.");
}

PixelFormat parse_format(const std::string& text);
ColorMatrix parse_matrix(const std::string& text);
ColorRange parse_range(const std::string& text);
Dtype parse_dtype(const std::string& text);
const char* matrix_name(ColorMatrix matrix);
const char* range_name(ColorRange range);

// "uint8 of shape (4, 4) and strides (4, 1)", for messages.
std::string describe(const pybind11::array& array);

// A uint8 (H, W, 3) RGB or (H, W) gray array. The view lives as long as the array.
ImageView array_view(const pybind11::array& image);

// Two-dimensional uint8 planes of bytes. Each is checked against the extent its format asks for.
ImageView plane_view(const std::vector<pybind11::array>& planes, const std::string& format, int width, int height,
                     const std::string& matrix, const std::string& range);

}  // namespace compass_edge
