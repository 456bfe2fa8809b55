// Idle after some work: libuv's pool and V8's platform without anything to do. With "hot": a loop that computes.
const fs = require("fs");

function rankItems(n) {
  let h = n;
  for (let i = 0; i < 200000; i++) h = (h * 31 + i) % 1000003;
  return h;
}

let left = 8;
for (let i = 0; i < 8; i++) {
  fs.readFile("/etc/passwd", () => {
    if (--left) return;
    console.log("ready");
    if (process.argv[2] === "hot") (function turn(n) {
      rankItems(n);
      setImmediate(turn, n + 1);
    })(0);
  });
}
setTimeout(() => {}, 3600000);
