// A C interface over tf2::BufferCore, for ctypes: transforms are seven doubles (x y z, qx qy qz qw), times are
// int64 nanoseconds, and an exception is a number with its text in a buffer of the caller's.

#include <console_bridge/console.h>
#include <geometry_msgs/TransformStamped.h>
#include <tf2/buffer_core.h>
#include <tf2/exceptions.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace {

// The same numbers stand in standin/tf2_ros/_core.py.
enum Status { OK = 0, LOOKUP = 1, CONNECTIVITY = 2, EXTRAPOLATION = 3, INVALID_ARGUMENT = 4, OTHER = 5 };

// Nothing is printed: tf2 warns about every repeated stamp, which floods the tests of transforms that stand still.
const bool silenced = [] { console_bridge::noOutputHandler(); return true; }();

ros::Time time_of(int64_t ns) {
  ros::Time time;
  time.fromNSec(static_cast<uint64_t>(ns));
  return time;
}

template <typename Call>
int guarded(char* text, int text_size, Call call) {
  const auto failed = [&](Status status, const std::exception& error) {
    std::snprintf(text, text_size, "%s", error.what());
    return static_cast<int>(status);
  };
  try {
    call();
    return OK;
  } catch (const tf2::LookupException& error) {
    return failed(LOOKUP, error);
  } catch (const tf2::ConnectivityException& error) {
    return failed(CONNECTIVITY, error);
  } catch (const tf2::ExtrapolationException& error) {
    return failed(EXTRAPOLATION, error);
  } catch (const tf2::InvalidArgumentException& error) {
    return failed(INVALID_ARGUMENT, error);
  } catch (const std::exception& error) {
    return failed(OTHER, error);
  }
}

void unpack(const geometry_msgs::TransformStamped& transform, double* values, int64_t* stamp_ns) {
  const auto& t = transform.transform.translation;
  const auto& r = transform.transform.rotation;
  const double all[] = {t.x, t.y, t.z, r.x, r.y, r.z, r.w};
  std::copy(std::begin(all), std::end(all), values);
  *stamp_ns = static_cast<int64_t>(transform.header.stamp.toNSec());
}

}  // namespace

extern "C" {

tf2::BufferCore* c3d_tf2_new(int64_t cache_ns) {
  ros::Duration cache;
  cache.fromNSec(cache_ns);
  return new tf2::BufferCore(cache);
}

void c3d_tf2_delete(tf2::BufferCore* buffer) { delete buffer; }

void c3d_tf2_clear(tf2::BufferCore* buffer) { buffer->clear(); }

int c3d_tf2_set(tf2::BufferCore* buffer, const char* parent, const char* child, int64_t stamp_ns,
                const double* values, const char* authority, int is_static, char* text, int text_size) {
  return guarded(text, text_size, [&] {
    geometry_msgs::TransformStamped transform;
    transform.header.frame_id = parent;
    transform.header.stamp = time_of(stamp_ns);
    transform.child_frame_id = child;
    transform.transform.translation.x = values[0];
    transform.transform.translation.y = values[1];
    transform.transform.translation.z = values[2];
    transform.transform.rotation.x = values[3];
    transform.transform.rotation.y = values[4];
    transform.transform.rotation.z = values[5];
    transform.transform.rotation.w = values[6];
    buffer->setTransform(transform, authority, is_static != 0);
  });
}

int c3d_tf2_lookup(const tf2::BufferCore* buffer, const char* target, const char* source, int64_t time_ns,
                   double* values, int64_t* stamp_ns, char* text, int text_size) {
  return guarded(text, text_size, [&] {
    unpack(buffer->lookupTransform(target, source, time_of(time_ns)), values, stamp_ns);
  });
}

int c3d_tf2_lookup_full(const tf2::BufferCore* buffer, const char* target, int64_t target_ns, const char* source,
                        int64_t source_ns, const char* fixed, double* values, int64_t* stamp_ns, char* text,
                        int text_size) {
  return guarded(text, text_size, [&] {
    unpack(buffer->lookupTransform(target, time_of(target_ns), source, time_of(source_ns), fixed), values, stamp_ns);
  });
}

// 1 possible, 0 not possible and why is in text.
int c3d_tf2_can(const tf2::BufferCore* buffer, const char* target, const char* source, int64_t time_ns, char* text,
                int text_size) {
  std::string why;
  bool possible = false;
  const int status = guarded(text, text_size, [&] {
    possible = buffer->canTransform(target, source, time_of(time_ns), &why);
  });
  if (status == OK) std::snprintf(text, text_size, "%s", why.c_str());
  return possible;
}

}  // extern "C"
