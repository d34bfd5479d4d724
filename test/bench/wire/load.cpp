// The client of the measurements, as `load.ts` is, at a tenth of its cost. Arguments: port, stream (0, 1), whether the server ends a
// connection after a stream (0, 1), requests, connections, whether its events carry their time (0, 1). The request comes by standard
// input. Prints one line of JSON: ms of the run, of each answer to its first event and to its end, of each timed event on its way.
#include <arpa/inet.h>
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
#include <memory>
#include <string>
#include <vector>

static double steady() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
static double wall() { return std::chrono::duration<double, std::milli>(std::chrono::system_clock::now().time_since_epoch()).count(); }

static std::string request;
static int port, poller;
static bool isStream, closes, isTimed;
static long toBegin, toEnd;
static std::vector<double> firsts, totals, delays;

struct Connection {
  int fd = -1;
  double began = 0;
  size_t sent = 0;
  bool isFirst = true, isLast = false;
  /** Of a whole answer its beginning, of a stream its last bytes. */
  std::string text;
  /** An event that is not whole yet. */
  std::string cut;
  long missing = -1;
};

[[noreturn]] static void fail(const std::string &why) {
  fprintf(stderr, "%s\n", why.c_str());
  exit(1);
}

static void watch(Connection &connection, uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &connection;
  epoll_ctl(poller, operation, connection.fd, &event);
}

static void connectTo(Connection &connection) {
  connection.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(connection.fd, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 && errno != EINPROGRESS)
    fail(std::string("connect: ") + strerror(errno));
  watch(connection, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
}

static void write(Connection &connection) {
  while (connection.sent < request.size()) {
    const ssize_t n = send(connection.fd, request.data() + connection.sent, request.size() - connection.sent, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno != EAGAIN && errno != ENOTCONN) fail(std::string("send: ") + strerror(errno));
      watch(connection, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
      return;
    }
    connection.sent += n;
  }
  watch(connection, EPOLLIN, EPOLL_CTL_MOD);
}

static void begin(Connection &connection) {
  if (toBegin == 0) {
    if (connection.fd >= 0) close(connection.fd);
    connection.fd = -1;
    return;
  }
  toBegin--;
  connection.began = steady();
  connection.sent = 0;
  connection.isFirst = true;
  connection.text.clear();
  connection.cut.clear();
  connection.missing = -1;
  if (connection.fd < 0) connectTo(connection);
  else write(connection);
}

static void over(Connection &connection) {
  totals.push_back(steady() - connection.began);
  toEnd--;
  if (connection.isLast || (isStream && closes)) {
    close(connection.fd);
    connection.fd = -1;
    connection.isLast = false;
  }
  begin(connection);
}

static void noteDelays(Connection &connection, const char *bytes, size_t length) {
  connection.cut.append(bytes, length);
  const double now = wall();
  size_t from = 0;
  for (size_t at; (at = connection.cut.find("\"t\":", from)) != std::string::npos;) {
    const size_t end = connection.cut.find('}', at);
    if (end == std::string::npos) break;
    delays.push_back(now - atof(connection.cut.c_str() + at + 4));
    from = end;
  }
  connection.cut.erase(0, std::max(from, connection.cut.size() > 400 ? connection.cut.size() - 400 : 0));
}

static bool endsWith(const std::string &text, const char *end) {
  const size_t length = strlen(end);
  return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

static void take(Connection &connection) {
  static char bytes[1 << 16];
  const ssize_t n = recv(connection.fd, bytes, sizeof bytes, 0);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) fail("it broke off, last: " + connection.text);
  // The engine's router ends a connection after a hundred answers.
  if (memmem(bytes, n, "\r\nConnection: close\r\n", 21)) connection.isLast = true;
  if (connection.isFirst && (!isStream || memmem(bytes, n, "{\"", 2))) {
    connection.isFirst = false;
    if (memmem(bytes, n, "HTTP/1.1", 8) && memcmp(bytes, "HTTP/1.1 200", 12) != 0) fail(std::string(bytes, n));
    firsts.push_back(steady() - connection.began);
  }
  if (isStream) {
    if (isTimed) noteDelays(connection, bytes, n);
    connection.text.append(bytes + std::max<ssize_t>(0, n - 40), std::min<ssize_t>(n, 40));
    if (connection.text.size() > 40) connection.text.erase(0, connection.text.size() - 40);
    if (!endsWith(connection.text, "\r\n0\r\n\r\n")) return;
    if (connection.text.find("[DONE]") == std::string::npos && connection.text.find("_duration") == std::string::npos)
      fail("it was cut, last: " + connection.text);
    return over(connection);
  }
  if (connection.missing < 0) {
    connection.text.append(bytes, n);
    const size_t end = connection.text.find("\r\n\r\n");
    if (end == std::string::npos) return;
    const char *length = strcasestr(connection.text.c_str(), "content-length: ");
    if (!length) {
      if (endsWith(connection.text, "\r\n0\r\n\r\n")) over(connection);
      return;
    }
    connection.missing = static_cast<long>(end) + 4 + atol(length + 16) - static_cast<long>(connection.text.size());
  } else connection.missing -= n;
  if (connection.missing == 0) over(connection);
}

static void print(const char *name, const std::vector<double> &values) {
  printf("\"%s\":[", name);
  for (size_t at = 0; at < values.size(); at++) printf(at == 0 ? "%.4f" : ",%.4f", values[at]);
  printf("]");
}

int main(int count, char **args) {
  if (count != 7) fail("arguments: port stream closes requests connections timed");
  signal(SIGPIPE, SIG_IGN);
  port = atoi(args[1]);
  isStream = args[2][0] == '1';
  closes = args[3][0] == '1';
  toBegin = toEnd = atol(args[4]);
  isTimed = args[6][0] == '1';
  static char bytes[1 << 16];
  for (ssize_t n; (n = read(STDIN_FILENO, bytes, sizeof bytes)) > 0;) request.append(bytes, n);
  poller = epoll_create1(0);
  std::vector<std::unique_ptr<Connection>> all;
  const double began = steady();
  for (int at = atoi(args[5]); at > 0; at--) {
    all.push_back(std::make_unique<Connection>());
    begin(*all.back());
  }
  static epoll_event events[512];
  while (toEnd > 0) {
    const int ready = epoll_wait(poller, events, 512, 60'000);
    if (ready == 0) fail("nothing came for a minute");
    for (int at = 0; at < ready; at++) {
      Connection &connection = *static_cast<Connection *>(events[at].data.ptr);
      if (connection.sent < request.size() && (events[at].events & EPOLLOUT)) write(connection);
      if (connection.fd >= 0 && (events[at].events & (EPOLLIN | EPOLLHUP | EPOLLERR))) take(connection);
    }
  }
  printf("{\"ms\":%.4f,", steady() - began);
  print("firsts", firsts);
  printf(",");
  print("totals", totals);
  printf(",");
  print("delays", delays);
  printf("}\n");
}
