// What programs can watch.

"use strict";

const { channel } = require("node:diagnostics_channel");

// The README has the messages. A channel without subscribers costs nothing.
const channels = { call: channel("idnode:call"), retry: channel("idnode:retry"), failover: channel("idnode:failover"), look: channel("idnode:look") };

module.exports = { channels };
