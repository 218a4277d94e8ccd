package main

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
)

func TestWhenTheIDsOfALayoutEnd(t *testing.T) {
	for want, l := range map[string]*idnodev1.PoolLayout{
		"2080-07-10": {Epoch: timestamppb.New(time.UnixMilli(1_288_834_974_657)), Unit: durationpb.New(time.Millisecond), TimeBits: 41},
		"1970-01-13": {Epoch: &timestamppb.Timestamp{}, Unit: durationpb.New(time.Second), TimeBits: 20},
	} {
		if got := idsEnd(l); got != want {
			t.Errorf("%v ends at %s, want %s", l, got, want)
		}
	}
}
