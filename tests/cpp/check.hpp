// A test framework in one small header, so that the C++ tests need nothing but a compiler.
//
//   TEST(ring_overwrites_the_oldest) { CHECK(ring.written() == 3); CHECK_THROWS(ring.writer(), "already"); }
//   int main(int argc, char** argv) { return compass_edge::check::run(argc, argv); }
//
// A failed CHECK prints its place and ends the test; the program's exit code is the number of failed tests.
// `program NAME` runs the tests whose names contain NAME.
#pragma once

#include <cstdio>
#include <exception>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace compass_edge::check {

struct Failure {
    std::string text;
};

struct Case {
    const char* name;
    void (*body)();
};

inline std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}

struct Register {
    Register(const char* name, void (*body)()) { cases().push_back({name, body}); }
};

[[noreturn]] inline void fail(const char* file, int line, const std::string& text) {
    throw Failure{std::string(file) + ":" + std::to_string(line) + ": " + text};
}

template <class A, class B>
void equal(const A& a, const B& b, const char* expression, const char* file, int line) {
    if (a == b) return;
    std::ostringstream text;
    text << expression << ": " << a << " != " << b;
    fail(file, line, text.str());
}

inline void throws(const std::function<void()>& body, const std::string& part, const char* file, int line) {
    try {
        body();
    } catch (const std::exception& error) {
        if (std::string(error.what()).find(part) != std::string::npos) return;
        fail(file, line, "expected a message with '" + part + "', got '" + error.what() + "'");
    }
    fail(file, line, "expected an exception with '" + part + "', nothing was thrown");
}

inline int run(int argc, char** argv) {
    const std::string filter = argc > 1 ? argv[1] : "";
    int passed = 0, failed = 0;
    for (const Case& test : cases()) {
        if (std::string(test.name).find(filter) == std::string::npos) continue;
        try {
            test.body();
            ++passed;
        } catch (const Failure& failure) {
            std::fprintf(stderr, "FAILED %s\n  %s\n", test.name, failure.text.c_str());
            ++failed;
        } catch (const std::exception& error) {
            std::fprintf(stderr, "FAILED %s\n  unexpected exception: %s\n", test.name, error.what());
            ++failed;
        }
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    if (passed + failed == 0) std::fprintf(stderr, "no test's name contains '%s'\n", filter.c_str());
    return passed + failed == 0 ? 1 : failed;
}

}  // namespace compass_edge::check

#define TEST(name)                                                                  \
    static void test_##name();                                                      \
    static const compass_edge::check::Register register_##name(#name, test_##name); \
    static void test_##name()
#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) compass_edge::check::fail(__FILE__, __LINE__, #condition); \
    } while (false)
#define CHECK_EQ(a, b) compass_edge::check::equal((a), (b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_THROWS(statement, part) compass_edge::check::throws([&] { statement; }, part, __FILE__, __LINE__)
