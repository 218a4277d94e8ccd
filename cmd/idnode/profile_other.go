//go:build !unix

package main

import "os"

// profileSignal is of no use: no node runs here.
var profileSignal = os.Kill
