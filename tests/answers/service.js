// A small service in JavaScript whose trouble is known: MODE [ARGUMENT]. Some work is done first, so libuv's pool and V8's
// platform are there. "ready" on stdout when it works.
const fs = require("fs");
const http = require("http");
const net = require("net");

const [, , mode, argument] = process.argv;
const visits = [];
const cache = new Map();
let journal, backend, catalogue, sink = 0;

function rankItems(n) {
  let h = n;
  for (let i = 0; i < 200000; i++) h = (h * 31 + i) % 1000003;
  sink += h;
}

function rememberVisit(n) {
  const visit = [];
  for (let i = 0; i < 500; i++) visit.push({ page: n + i, at: i / 2 + 0.25 });
  visits.push(visit);
}

function writeJournal(n) {
  fs.writeSync(journal, "a".repeat(4096), (n % 64) * 4096);
  fs.fsyncSync(journal);
}

function growTree(depth) {
  return depth ? { left: growTree(depth - 1), right: growTree(depth - 1), depth } : { depth };
}

// Most of its heap lives, and answers are kept until they are old: the collector has to mark all of it again and again.
function buildAnswer(n) {
  visits[n % 64] = growTree(9);
}

function askPricing() {
  backend.write("how much");
}

function cachePut(n) {
  cache.set(n % 1024, "x".repeat(100) + n);
}

const agent = new http.Agent({ keepAlive: true });

// Each request needs a price, which somebody else has.
function answerWithPrice(request, response) {
  http.get({ port: Number(argument.split(":")[0]), host: "127.0.0.1", agent }, (price) => {
    price.resume();
    price.on("end", () => response.end("price!"));
  });
}

// A database's connection, which is kept.
function answerFromDatabase(request, response) {
  backend.once("data", () => response.end("row!"));
  backend.write("query");
}

function serve(handler) {
  http.createServer(handler).listen(Number(argument.split(":")[1]), "127.0.0.1");
}

function forever(work, pause) {
  let n = 0;
  const turn = () => {
    work(n++);
    pause ? setTimeout(turn, pause) : setImmediate(turn);
  };
  turn();
}

const start = {
  hot: () => forever(rankItems),
  leak: () => forever(rememberVisit, 2),
  disk: () => {
    journal = fs.openSync(argument, "w");
    forever(writeJournal);
  },
  gc: () => {
    catalogue = growTree(20);
    forever(buildAnswer);
  },
  peer: () => {
    backend = net.connect(Number(argument), "127.0.0.1", askPricing);
    backend.on("data", askPricing);
  },
  worker: () => {
    backend = net.connect(Number(argument.split(":")[0]), "127.0.0.1", askPricing);
    backend.on("data", askPricing);
  },
  front: () => serve(answerWithPrice),
  keepalive: () => {
    backend = net.connect(Number(argument.split(":")[0]), "127.0.0.1");
    const watch = net.connect(Number(argument.split(":")[0]), "127.0.0.1", () => watch.write("watch"));
    serve(answerFromDatabase);
  },
  news: () => {
    backend = net.connect(Number(argument.split(":")[0]), "127.0.0.1", () => backend.write("subscribe"));
    backend.on("data", (news) => visits.push(news.length));
  },
  cache: () => {
    for (let n = 0; n < 1024; n++) cachePut(n);
    forever(cachePut, 2);
  },
  idle: () => {},
};

let left = 8;
for (let i = 0; i < 8; i++) {
  fs.readFile("/etc/passwd", () => {
    if (--left) return;
    start[mode]();
    console.log("ready");
  });
}
setTimeout(() => {}, 3600000);
