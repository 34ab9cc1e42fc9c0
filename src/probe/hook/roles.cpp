// Which role a thread of OpenMP's has: that of the thread whose parallel region it works in.
//
// OpenMP tells a worker nothing of who that is, but hands it a copy of that thread's own settings. One of them,
// the device that `target` regions go to by default, means nothing on a CPU, so the role travels in it.

#include <dlfcn.h>

#include "events.h"

namespace stepledger {

namespace {

// No machine has as many devices: told apart from what anybody else would set.
constexpr int kLent = 0x5E1D0000;

// Of the OpenMP that libtorch works with. Null where it has been built without: its threads then have no role.
int (*const get_default_device)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_default_device"));
void (*const set_default_device)(int) =
    reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_default_device"));

// What the setting was before this thread had a role.
thread_local int before = 0;

void lend(Role role) {
  if (!get_default_device || !set_default_device) return;
  if (here.role == Role::kOther) before = get_default_device();
  set_default_device(role == Role::kOther ? before : kLent | int(role));
}

}  // namespace

void take_role(Role role) {
  if (role == here.role) return;
  lend(role);
  here.role = role;
}

Role role_here() {
  if (here.role != Role::kOther || !get_default_device) return here.role;
  switch (get_default_device()) {
    case kLent | int(Role::kTraining):
      return Role::kTraining;
    case kLent | int(Role::kLoading):
      return Role::kLoading;
    default:
      return Role::kOther;
  }
}

}  // namespace stepledger
