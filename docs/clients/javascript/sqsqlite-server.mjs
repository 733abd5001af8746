// A server for one test suite: `sqsqlite serve --test-mode`, with queues of its own and a clock that tests move.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Starts a server on a free port. With AWS_ENDPOINT_URL, uses the one that runs there, such as a container. */
export async function startServer() {
  if (process.env.AWS_ENDPOINT_URL) {
    return new TestServer(process.env.AWS_ENDPOINT_URL);
  }
  const server = spawn("sqsqlite", ["serve", "--test-mode", "--port", "0"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  process.on("exit", () => server.kill());
  const printed = [];
  const url = await new Promise((resolve, reject) => {
    server.on("error", reject);
    server.on("exit", () => reject(new Error(`sqsqlite ended:\n${printed.join("\n")}`)));
    createInterface({ input: server.stderr }).on("line", (line) => {
      printed.push(line);
      const found = / on (http:\/\/\S+:\d+)/.exec(line);
      if (found) {
        resolve(found[1]);
      }
    });
  });
  return new TestServer(url, server);
}

class TestServer {
  constructor(url, process) {
    this.url = url;
    this.process = process;
  }

  /** Moves the server's clock forward: delays, visibility timeouts and long polls end at once. */
  async advance(seconds) {
    await this.#post("clock", { advance: seconds });
  }

  /** Removes all queues, and sets the clock to the machine's time. */
  async reset() {
    await this.#post("reset");
  }

  stop() {
    this.process?.kill();
  }

  async #post(page, body) {
    const answer = await fetch(`${this.url}/_test/${page}`, {
      method: "POST",
      headers: { "X-Sqsqlite-Test": "1" },
      body: body && JSON.stringify(body),
    });
    if (!answer.ok) {
      throw new Error(`${page}: ${answer.status} ${await answer.text()}`);
    }
  }
}
