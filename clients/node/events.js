// What programs can watch.

"use strict";

const { channel } = require("node:diagnostics_channel");

// The README has the messages. A channel without subscribers costs nothing.
const channels = { call: channel("idnode:call"), retry: channel("idnode:retry"), failover: channel("idnode:failover"), look: channel("idnode:look") };

// Tells an application what its client does. What it throws, now or later, is a warning, and ends no call.
function teller(observe) {
  if (observe === undefined) return undefined;
  if (typeof observe !== "function") throw new TypeError(`observe is a function, not ${observe}`);
  return async (event) => {
    try {
      await observe(event);
    } catch (error) {
      process.emitWarning(`an observer failed: ${String(error)}`, "IdnodeWarning");
    }
  };
}

// Ends what a client leaves behind that is collected before it was closed. One that no node has answered has no numbers.
const dropped = new FinalizationRegistry((router) => {
  if (router.newest) process.emitWarning(`a client was dropped without close, and unused numbers of it may be lost: ${router}`, "IdnodeWarning");
  router.close();
});

module.exports = { channels, teller, dropped };
