package grpcapi

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	_ "github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/server/service"
	"github.com/idnode/idnode/server/tlsconf"
	"github.com/idnode/idnode/snowflake"
)

// mostOf has how many items a list in an answer has at most, where it is no page.
var mostOf = map[protoreflect.FullName]int{
	"idnode.v1.GenerateResponse.ids":            service.MaxIDsBytes / 36, // Of the size of a GUID; they are bounded together.
	"idnode.v1.GenerateResponse.blocks":         64,
	"idnode.v1.NextIdentityResponse.blocks":     64,
	"idnode.v1.SeriesNumber.scope":              68, // The values that a template of 256 bytes has room for.
	"idnode.v1.ScopeReport.scope":               68,
	"idnode.v1.ScopeReport.allotments":          2, // Those of a page are bounded together.
	"idnode.v1.ScopeLast.scope":                 68,
	"idnode.v1.ParseNumberResponse.scope":       68,
	"idnode.v1.GetStatusResponse.warnings":      100,
	"idnode.v1.Member.callers":                  tlsconf.MaxCAs,
	"idnode.v1.ListSettingsResponse.settings":   100,
	"idnode.v1.MergeCountersResponse.conflicts": service.MaxMergeNames,
	"idnode.v1.MergeCountersResponse.growth":    service.MaxMergeNames,
	"idnode.v1.MergeClusterResponse.shared":     service.MaxMergeTags,
	"idnode.v1.RoleTable.roles":                 1, // The whole table is in one grant: see sizeOf.
	"idnode.v1.RoleTable.limits":                0,
	"idnode.v1.AccessRole.principals":           0,
	"idnode.v1.AccessRole.grants":               1,
	"idnode.v1.RoleGrant.rights":                1,
	"idnode.v1.ListSeriesResponse.series":       service.MaxSeriesPage,
	"idnode.v1.SeriesDefinition.allowed":        1, // The values of all names are bounded together.
	"idnode.v1.AllowedValues.values":            series.MaxAllowed,
	"idnode.v1.PeriodReport.scope":              68,
	"idnode.v1.PeriodReport.voided_ranges":      1, // Each scope and each range of a part is by another number.
	"idnode.v1.ReportPeriodResponse.scopes":     2000,
	"idnode.v1.SeriesPreview.texts":             2,
	"idnode.v1.SeriesPreview.values":            format.MaxTemplateBytes / len("{a}"),
}

// sizeOf has how long a text in an answer is at most, by its field, or else by its name.
var sizeOf = map[protoreflect.FullName]int{
	"idnode.v1.GenerateResponse.ids": 36,
	"idnode.v1.MergeConflict.id":     service.MaxMergeBytes / service.MaxMergeNames,
	"idnode.v1.CounterChange.name":   service.MaxMergeBytes / service.MaxMergeNames,
	"idnode.v1.RoleGrant.prefix":     3 * rights.MaxEncodedBytes, // The words of the API for what the table has as numbers.
	"idnode.v1.SeriesNumber.key":     series.MaxKeyBytes,
	"idnode.v1.SeriesPreview.texts":  format.MaxTextBytes,
	"idnode.v1.SeriesPreview.values": format.MaxValueBytes,
	"idnode.v1.AllowedValues.values": format.MaxValueBytes,
	"idnode.v1.Setting.key":          64,
	"idnode.v1.Worker.holder":        snowflake.MaxHolderBytes,
	"idnode.v1.CallersOfCA.ca":       tlsconf.MaxCANameBytes,
	"idnode.v1.Member.tag":           4, "idnode.v1.Member.id": 32,
}

var sizeOfName = map[protoreflect.Name]int{
	"database": docid.MaxDatabaseBytes, "databases": docid.MaxDatabaseBytes, "name": docid.MaxNameBytes, "tag": docid.MaxNameBytes,
	"ids": docid.MaxIDBytes, "id": docid.MaxIDBytes,
	"text": format.MaxTextBytes, "label": series.MaxLabelBytes, "reason": series.MaxReasonBytes,
	"note": series.MaxNoteBytes, "until": 10, "format": format.MaxTemplateBytes,
	"time_zone": series.MaxTimeZoneBytes, "scope": 2, "date": 10, "last_date": 10, "begins_again": 10, "principal": 1000, "node": 4,
	"next_page_token": 4 * docid.MaxIDBytes,
	"prefix":          docid.MaxNameBytes, "suffix": 8, "node_tag": 4, "leader_tag": 4, "shared": 4, "token": 200, "cluster_id": 32,
	"warnings": 2000, "resume": docid.MaxNameBytes + 32, "description": 2000, "lowered": 2000,
	"detail": 2000, "grpc_address": 512, "raft_address": 512,
	"http_address": 512, "version": 64,
}

// fill sets all fields of a message to the largest that they can have.
func fill(t *testing.T, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsMap():
			t.Errorf("%s is a map", f.FullName())
		case f.IsList():
			most, ok := mostOf[f.FullName()]
			if !ok {
				most = service.MaxPageSize
			}
			for list := m.Mutable(f).List(); list.Len() < most; {
				if f.Message() != nil {
					fill(t, list.AppendMutable().Message())
				} else {
					list.Append(largest(t, f))
				}
			}
		case f.Message() != nil:
			fill(t, m.Mutable(f).Message())
		default:
			m.Set(f, largest(t, f))
		}
	}
}

// largest is the largest value of a field.
func largest(t *testing.T, f protoreflect.FieldDescriptor) protoreflect.Value {
	size, ok := sizeOf[f.FullName()]
	if !ok {
		size, ok = sizeOfName[f.Name()]
	}
	switch f.Kind() {
	case protoreflect.StringKind:
		if !ok {
			t.Errorf("nothing says how long %s is at most", f.FullName())
		}
		return protoreflect.ValueOfString(strings.Repeat("x", size))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(make([]byte, 64<<10))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(-1)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(-1)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1<<32 - 1)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(-1)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(1<<64 - 1)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(1)
	default:
		t.Fatalf("%s is a %s", f.FullName(), f.Kind())
		return protoreflect.Value{}
	}
}

// TestTheLargestAnswerOfEachCall is one that clients accept: with pages as long as they may
// be, of names as long as they may be.
func TestTheLargestAnswerOfEachCall(t *testing.T) {
	protoregistry.GlobalFiles.RangeFilesByPackage("idnode.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			for methods, j := file.Services().Get(i).Methods(), 0; j < methods.Len(); j++ {
				kind, err := protoregistry.GlobalTypes.FindMessageByName(methods.Get(j).Output().FullName())
				if err != nil {
					t.Fatal(err)
				}
				if methods.Get(j).IsStreamingClient() {
					continue // Exchange bounds its messages by itself.
				}
				m := kind.New()
				fill(t, m)
				size := proto.Size(m.Interface())
				t.Logf("%s: %d bytes", methods.Get(j).Name(), size)
				if size > maxMessageBytes {
					t.Errorf("the answer of %s has %d bytes at most, above %d", methods.Get(j).Name(), size, maxMessageBytes)
				}
			}
		}
		return true
	})
}
