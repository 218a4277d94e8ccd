// TLS of a client, whose files are read again when they change.

"use strict";

const { X509Certificate } = require("node:crypto");
const { readFileSync } = require("node:fs");
const { createSecureContext } = require("node:tls");
const { isDeepStrictEqual } = require("node:util");
const { checkNone, given, now } = require("./waiting.js");

const LOOK_AGAIN = 1000; // Milliseconds.
const FILES = ["ca", "cert", "key"];
const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----.+?-----END \1-----/gs;

// Text without PEM in it is the name of a file.
const isName = (value) => typeof value === "string" && !value.includes("-----BEGIN");
const list = (value) => [value].flat();

// Reads a file of PEM. Node would leave out what it cannot read, as where a file is being written, and trust its own authorities if
// nothing were left.
function textOf(name, file) {
  const text = readFileSync(file, "utf8");
  const blocks = text.match(BLOCK) ?? [];
  const wanted = blocks.filter((block) => block.endsWith(name === "key" ? "KEY-----" : "CERTIFICATE-----"));
  if (wanted.length === 0 || blocks.length < text.split("-----BEGIN").length - 1) throw new TypeError(`${file} is no whole PEM for ${name}`);
  try {
    if (name !== "key") wanted.forEach((block) => new X509Certificate(block));
  } catch (cause) {
    throw new TypeError(`${file} has a certificate that cannot be read: ${cause.message}`, { cause });
  }
  return text;
}

class Tls {
  #options; // As the program has given them, with the names of files.
  #texts; // What the options with names of files were when these were read last.
  #context;
  #looked = now();
  #warned;

  constructor(options) {
    const { ca, cert, key, pfx, passphrase, servername, minVersion, ciphers, rejectUnauthorized, ...unknown } = given(options);
    checkNone(unknown);
    this.#options = options;
    this.#read();
  }

  // The options of the connections to a node. A session would be resumed with the certificate that it began with.
  get options() {
    const rest = Object.entries(this.#options).filter(([name]) => !FILES.includes(name));
    return { ...Object.fromEntries(rest), ...(Object.keys(this.#texts).length > 0 && { maxCachedSessions: 0 }) };
  }

  // What a new connection uses. Files that cannot be read, or do not fit each other, as in the middle of a change, leave it as it is.
  get context() {
    if (now() - this.#looked < LOOK_AGAIN) return this.#context;
    this.#looked = now();
    try {
      this.#read();
      this.#warned = undefined;
    } catch ({ message }) {
      if (message !== this.#warned) process.emitWarning(`the files of TLS are used as they were: ${message}`, "IdnodeWarning");
      this.#warned = message;
    }
    return this.#context;
  }

  #read() {
    const given = FILES.map((name) => [name, list(this.#options[name])]).filter(([, values]) => values.some(isName));
    const texts = Object.fromEntries(given.map(([name, values]) => [name, values.map((value) => (isName(value) ? textOf(name, value) : value))]));
    if (this.#context && isDeepStrictEqual(texts, this.#texts)) return;
    this.#context = createSecureContext({ ...this.#options, ...texts });
    this.#texts = texts;
  }
}

module.exports = { Tls };
