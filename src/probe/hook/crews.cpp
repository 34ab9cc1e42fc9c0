#include "crews.h"

#include <dlfcn.h>
#include <torch/csrc/autograd/graph_task.h>

#include <mutex>
#include <vector>

#include "events.h"

namespace stepledger {

namespace {

// ---- The crews' places ------------------------------------------------------------------------------

// A worker of OpenMP's is not told whom it works for, but is handed a copy of that thread's own settings. One of them, the
// device that `target` regions go to by default, means nothing on a CPU: the crew's place travels in it. No machine has as
// many devices, so it is told apart from what anybody else would set.
constexpr int kLent = 0x5E1D0000;
constexpr int kPlaces = 4096;

Crew crews[kPlaces];
Crew nobodys;

std::mutex places_lock;
std::vector<int> free_places;
int next_place = 0;

// -1 where all are taken.
int take_place() {
  std::lock_guard<std::mutex> guard(places_lock);
  if (free_places.empty()) return next_place < kPlaces ? next_place++ : -1;
  const int place = free_places.back();
  free_places.pop_back();
  return place;
}

void give_back_place(int place) {
  std::lock_guard<std::mutex> guard(places_lock);
  free_places.push_back(place);
}

// Those of the OpenMP that libtorch works with; null where it has been built without: its threads then belong to nobody.
int (*const get_default_device)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_default_device"));
void (*const set_default_device)(int) =
    reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_default_device"));

// Leads a crew as long as it lives, which is as long as its thread does.
struct Lead {
  const int place = take_place();
  // What the setting was that the place is lent in.
  const int before = get_default_device ? get_default_device() : 0;
  // Of a thread that found no place: it works alone.
  Crew alone;

  Lead() {
    crew().role.store(Role::kOther, std::memory_order_relaxed);
    crew().move_to(0, 0);
    lend();
  }
  ~Lead() {
    // What other destructors of the thread still do is nobody's.
    here.crew = nullptr;
    here.ended = true;
    if (place < 0) return;
    if (set_default_device) set_default_device(before);
    give_back_place(place);
  }
  // Again, where the program has set it since.
  void lend() {
    if (place >= 0 && get_default_device && set_default_device) set_default_device(kLent | place);
  }
  Crew& crew() { return place >= 0 ? crews[place] : alone; }
};

Lead& lead() {
  thread_local Lead of_this_thread;
  return of_this_thread;
}

// ---- Graphs of the backward pass --------------------------------------------------------------------

// The walk through a graph that this thread is in; negative outside.
int walk_here() { return torch::autograd::get_current_graph_task_id(); }

std::atomic<bool> graphs_known{false};

// Ends what a walk through a graph made of this thread, if it is over. Between its nodes the engine adds up the gradients
// that the last one made, so the crew stays where it was.
void look_up() {
  if (here.walk < 0 || here.depth || walk_here() == here.walk) return;
  here.walk = -1;
  Crew& crew = *here.crew;
  const bool home = crew.role.load(std::memory_order_relaxed) == Role::kTraining;
  crew.move_to(home ? current_scope() : 0, 0);
  if (crew.role.load(std::memory_order_relaxed) == Role::kServing && !here.enlisted) {
    crew.role.store(Role::kOther, std::memory_order_relaxed);
  }
}

}  // namespace

Crew& lead_crew() {
  static Crew of_the_ended;
  if (here.ended) return of_the_ended;
  if (here.crew) {
    look_up();
  } else {
    here.crew = &lead().crew();
  }
  return *here.crew;
}

const Crew& crew_here() {
  if (here.crew) return lead_crew();
  const int place = get_default_device ? get_default_device() ^ kLent : -1;
  return place >= 0 && place < kPlaces ? crews[place] : nobodys;
}

bool is_aside(const Crew& crew) {
  if (crew.role.load(std::memory_order_relaxed) != Role::kOther) return false;
  // Autograd has threads of its own for each device. Unless its nodes are observed nobody knows whose graph they walk: the
  // training thread's, then.
  return graphs_known.load(std::memory_order_relaxed) || !is_watching_cuda() || walk_here() < 0;
}

void know_graphs(bool on) { graphs_known.store(on, std::memory_order_relaxed); }

void begin_graph_node(const bool* is_ours) {
  Crew& crew = lead_crew();
  here.walk = walk_here();
  const Role role = crew.role.load(std::memory_order_relaxed);
  if (role == Role::kTraining || role == Role::kLoading || here.enlisted) return;
  // For the whole walk, once there is a node of ours in it. A shared parameter's node is of whoever used it first, and ends
  // the graphs of others too: it tells nothing.
  if (here.known_walk != here.walk) here.serves = false;
  here.known_walk = here.walk;
  here.serves |= is_ours && *is_ours;
  crew.role.store(here.serves ? Role::kServing : Role::kOther, std::memory_order_relaxed);
}

}  // namespace stepledger

using namespace stepledger;

extern "C" {

// Says that this thread fetches batches, as long as it lives. The one that trains may do that too, and goes on training.
void sl_load_here() {
  Crew& crew = lead_crew();
  if (crew.role.load(std::memory_order_relaxed) != Role::kTraining) crew.role.store(Role::kLoading, std::memory_order_relaxed);
}

// Says that this thread trains beside the training thread, as long as it lives.
void sl_serve_here() {
  Crew& crew = lead_crew();
  if (crew.role.load(std::memory_order_relaxed) == Role::kTraining) return;
  crew.role.store(Role::kServing, std::memory_order_relaxed);
  here.enlisted = true;
}

// Says whether this is the thread that trains. The first one of the process is thread number 0.
void sl_train_here(bool on) {
  this_thread();
  Crew& crew = lead_crew();
  crew.role.store(on ? Role::kTraining : Role::kOther, std::memory_order_relaxed);
  sl_set_scope(0);
  if (on) lead().lend();
}

}  // extern "C"
