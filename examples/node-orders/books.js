// The orders of the service, in a file to which a line is added for each change. In a real service this is a database.

import { open, readFile } from "node:fs/promises";

export class Books {
  #file;
  #orders = new Map(); // By their keys.

  static async open(path) {
    const books = new Books();
    const text = await readFile(path, "utf8").catch((error) => (error.code === "ENOENT" ? "" : Promise.reject(error)));
    const whole = text.slice(0, text.lastIndexOf("\n") + 1); // A line that was cut was not answered.
    for (const line of whole.split("\n").filter(Boolean)) books.#note(JSON.parse(line));
    books.#file = await open(path, "a");
    await books.#file.truncate(Buffer.byteLength(whole));
    return books;
  }

  get all() {
    return [...this.#orders.values()];
  }

  get(key) {
    return this.#orders.get(key);
  }

  // Returns once the order is on disk.
  async write(order) {
    await this.#file.appendFile(`${JSON.stringify(order)}\n`);
    await this.#file.datasync();
    this.#note(order);
  }

  close() {
    return this.#file.close();
  }

  #note(order) {
    this.#orders.set(order.key, order);
  }
}
