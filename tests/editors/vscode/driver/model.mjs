/**
 * A model whose words the scenario says one by one: a server of the chat completions API on loopback. A request to it
 * waits until the scenario takes it with `asked`, and then streams what the scenario has it say, when it says it.
 */
import { createServer } from "node:http";
import { within } from "./until.mjs";

/** One request to the model, and its answer as far as it was said. */
class Turn {
  #response;
  #calls = 0;

  constructor(body, response, headers) {
    /** The request's body and headers. */
    this.body = body;
    this.headers = headers;
    this.#response = response;
    /** Settles when the daemon has hung up, before or after the end. */
    this.hungUp = new Promise((done) => response.on("close", done));
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
  }

  /** The text of the last message of a role, `user` unless said. */
  heard(role = "user") {
    const said = this.body.messages.findLast((message) => message.role === role)?.content ?? "";
    return typeof said === "string" ? said : said.map((part) => part.text ?? "").join("\n");
  }

  says(text) {
    return this.#delta({ content: text });
  }

  thinks(text) {
    return this.#delta({ reasoning_content: text });
  }

  calls(name, input) {
    const call = { index: this.#calls, id: `call_${Date.now()}_${this.#calls}`, type: "function" };
    this.#calls += 1;
    return this.#delta({ tool_calls: [{ ...call, function: { name, arguments: JSON.stringify(input) } }] });
  }

  /** The end of the answer; with the text before it, where some is given. */
  ends(text) {
    if (text !== undefined) this.says(text);
    this.#send({ choices: [{ index: 0, delta: {}, finish_reason: this.#calls ? "tool_calls" : "stop" }] });
    this.#send({ choices: [], usage: { prompt_tokens: 1200, completion_tokens: 80, total_tokens: 1280 } });
    this.#response.end("data: [DONE]\n\n");
    return this;
  }

  #delta(delta) {
    this.#send({ choices: [{ index: 0, delta, finish_reason: null }] });
    return this;
  }

  #send(chunk) {
    const whole = { id: "answer", object: "chat.completion.chunk", created: 0, model: this.body.model, ...chunk };
    this.#response.write(`data: ${JSON.stringify(whole)}\n\n`);
  }
}

export class Model {
  #server = createServer((request, response) => this.#serve(request, response));
  #waiting = [];
  #asked = [];

  /** Begins to serve; gives the base URL. */
  async start() {
    await new Promise((done) => this.#server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${this.#server.address().port}/v1`;
  }

  /** The next request that nobody has taken. */
  async asked() {
    const turn = this.#waiting.shift() ?? new Promise((done) => this.#asked.push(done));
    return within("the model is asked", Promise.resolve(turn));
  }

  /** How many requests wait for somebody to take them. */
  get unheard() {
    return this.#waiting.length;
  }

  /** Forgets what a scenario has left behind. */
  reset() {
    this.#waiting = [];
    this.#asked = [];
    this.#server.closeAllConnections();
  }

  stop() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #serve(request, response) {
    let text = "";
    for await (const piece of request) text += piece;
    if (request.method !== "POST") {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ object: "list", data: [{ id: "live", object: "model" }] }));
      return;
    }
    const turn = new Turn(JSON.parse(text), response, request.headers);
    const taker = this.#asked.shift();
    if (taker) taker(turn);
    else this.#waiting.push(turn);
  }
}
