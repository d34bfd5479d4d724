// A model's process on llama-server's wire, as `emulator.ts` is, but faster than nginx: a proxy's limit is measured, not ours.
// Prints its port; ends with its standard input. The request sets the answer: `stream`, `max_tokens`, `pace`.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

using Clock = std::chrono::steady_clock;

static const std::string rest =
    R"("created":1790000000,"id":"chatcmpl-X3vq0s6Zt1kPb7","model":"acme/bench:Q8_0","system_fingerprint":"b11669-0")";
static const std::string usage = R"("usage":{"completion_tokens":1,"prompt_tokens":9,"total_tokens":10})";
static const std::string kept = "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nKeep-Alive: timeout=5, max=100\r\n";
static const std::string streamHead = kept + "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/** llama-server has one chunk per event. */
static std::string chunked(const std::string &data) {
  const std::string event = "data: " + data + "\n\n";
  char size[16];
  snprintf(size, sizeof size, "%zx\r\n", event.size());
  return size + event + "\r\n";
}

static std::string eventAt(const char *at) {
  return chunked(R"({"choices":[{"finish_reason":null,"index":0,"delta":{"content":" token"}}],)" + rest +
                 R"(,"object":"chat.completion.chunk","t":)" + at + "}");
}

static std::string wholeAnswer() {
  const std::string body =
      R"({"choices":[{"finish_reason":"length","index":0,"message":{"role":"assistant","content":"Hi"}}],)" + rest + "," + usage + "}";
  return kept + "Content-Length: " + std::to_string(body.size()) + "\r\nContent-Type: application/json; charset=utf-8\r\n\r\n" + body;
}

static std::string lastOf() {
  return chunked(R"({"choices":[{"finish_reason":"length","index":0,"delta":{}}],)" + rest + "}") +
         chunked(R"({"choices":[],)" + rest + "," + usage + "}") + chunked("[DONE]") + "0\r\n\r\n";
}

static const int blockEvents = 64;
static const std::string one = eventAt("1000000000");
static const std::string answer = wholeAnswer();
static const std::string last = lastOf();
static std::string block;

struct Connection {
  int fd;
  std::string head;
  long missing = 0;
  /** What the kernel did not take, from `sent` on. */
  std::string pending;
  size_t sent = 0;
  long left = 0;
  int pace = 0;
  bool isStream = false;
  bool isEnded = false;
};

static const int poller = epoll_create1(0);
static std::unordered_map<int, std::unique_ptr<Connection>> connections;
/** Paced streams by the time of their next event. */
static std::multimap<Clock::time_point, int> due;

static void watch(int fd, uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(poller, operation, fd, &event);
}

static void drop(Connection &connection) {
  const int fd = connection.fd;
  for (auto at = due.begin(); at != due.end();) at = at->second == fd ? due.erase(at) : std::next(at);
  close(fd);
  connections.erase(fd);
}

/** False: the kernel takes no more for now, or the connection is gone. */
static bool flush(Connection &connection) {
  while (connection.sent < connection.pending.size()) {
    const ssize_t n = send(connection.fd, connection.pending.data() + connection.sent, connection.pending.size() - connection.sent, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EAGAIN) watch(connection.fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
      else drop(connection);
      return false;
    }
    connection.sent += n;
  }
  connection.pending.clear();
  connection.sent = 0;
  return true;
}

static bool put(Connection &connection, const char *data, size_t length) {
  connection.pending.append(data, length);
  return flush(connection);
}

/** llama-server closes its connection after a stream, whatever its headers say. */
static void endStream(Connection &connection) {
  connection.isEnded = true;
  if (put(connection, last.data(), last.size())) shutdown(connection.fd, SHUT_WR);
}

static void talk(Connection &connection) {
  while (connection.left > 0) {
    const long now = std::min<long>(connection.left, blockEvents);
    connection.left -= now;
    if (!put(connection, block.data(), now * one.size())) return;
  }
  endStream(connection);
}

static void tick(Connection &connection) {
  char at[40];
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  snprintf(at, sizeof at, "%.2f", std::chrono::duration<double, std::milli>(now).count());
  const std::string event = eventAt(at);
  const int fd = connection.fd;
  put(connection, event.data(), event.size());
  if (connections.count(fd) == 0) return;
  if (--connection.left == 0) endStream(connection);
}

static long numberOf(const std::string &text, const char *key, long otherwise) {
  const auto at = text.find(key);
  return at == std::string::npos ? otherwise : atol(text.c_str() + at + strlen(key));
}

static void respond(Connection &connection) {
  const std::string asked = std::move(connection.head);
  connection.head.clear();
  if (asked.find("\"stream\":true") == std::string::npos) {
    put(connection, answer.data(), answer.size());
    return;
  }
  connection.isStream = true;
  connection.left = numberOf(asked, "\"max_tokens\":", 1);
  connection.pace = static_cast<int>(numberOf(asked, "\"pace\":", 0));
  connection.pending.append(streamHead);
  if (connection.pace == 0) return talk(connection);
  if (flush(connection)) due.emplace(Clock::now() + std::chrono::milliseconds(connection.pace), connection.fd);
}

static void take(Connection &connection) {
  static char bytes[1 << 16];
  const ssize_t n = recv(connection.fd, bytes, sizeof bytes, 0);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) return drop(connection);
  if (connection.missing > 0) {
    connection.missing -= n;
    if (connection.head.size() < 4096) connection.head.append(bytes, std::min<ssize_t>(n, 4096));
  } else {
    connection.head.append(bytes, std::min<ssize_t>(n, 8192));
    const auto end = connection.head.find("\r\n\r\n");
    if (end == std::string::npos) return;
    const long length = std::max(numberOf(connection.head, "ontent-length: ", 0), numberOf(connection.head, "ontent-Length: ", 0));
    connection.missing = static_cast<long>(end) + 4 + length - n;
  }
  if (connection.missing <= 0) respond(connection);
}

static void leaveWith(int fd) {
  char byte;
  if (read(fd, &byte, 1) <= 0) exit(0);
}

int main() {
  signal(SIGPIPE, SIG_IGN);
  for (int at = 0; at < blockEvents; at++) block += one;
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(server, reinterpret_cast<sockaddr *>(&address), size) != 0 || listen(server, 1024) != 0) return 1;
  getsockname(server, reinterpret_cast<sockaddr *>(&address), &size);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  watch(server, EPOLLIN, EPOLL_CTL_ADD);
  watch(STDIN_FILENO, EPOLLIN, EPOLL_CTL_ADD);
  static epoll_event events[512];
  for (;;) {
    int wait = -1;
    if (!due.empty()) {
      const auto ms = std::chrono::ceil<std::chrono::milliseconds>(due.begin()->first - Clock::now()).count();
      wait = static_cast<int>(std::max<long>(0, ms));
    }
    const int count = epoll_wait(poller, events, 512, wait);
    for (int at = 0; at < count; at++) {
      const int fd = events[at].data.fd;
      if (fd == STDIN_FILENO) leaveWith(fd);
      else if (fd == server) {
        for (int taken; (taken = accept4(server, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;) {
          const int on = 1;
          setsockopt(taken, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          connections[taken] = std::make_unique<Connection>(Connection{taken});
          watch(taken, EPOLLIN, EPOLL_CTL_ADD);
        }
      } else if (const auto found = connections.find(fd); found != connections.end()) {
        Connection &connection = *found->second;
        if (events[at].events & EPOLLOUT) {
          if (flush(connection)) {
            watch(fd, EPOLLIN, EPOLL_CTL_MOD);
            if (connection.isEnded) shutdown(fd, SHUT_WR);
            else if (connection.isStream && connection.pace == 0) talk(connection);
          }
          if (connections.count(fd) == 0) continue;
        }
        if (events[at].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) take(connection);
      }
    }
    const auto now = Clock::now();
    while (!due.empty() && due.begin()->first <= now) {
      const auto [time, fd] = *due.begin();
      due.erase(due.begin());
      const auto found = connections.find(fd);
      if (found == connections.end() || found->second->isEnded) continue;
      tick(*found->second);
      // Each event at its own time, however late the one before was.
      if (connections.count(fd) && !connections[fd]->isEnded) due.emplace(time + std::chrono::milliseconds(connections[fd]->pace), fd);
    }
  }
}
