package jsonapi

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// fieldName finds the field at fault in a message of protojson.
var fieldName = regexp.MustCompile(`field "?([\pL\pN_.]{1,64})\b`)

// decode reads the JSON form of a message. A field that is not known is an error, which
// names it: it may be one that matters, misspelt.
func decode(body []byte, m proto.Message) error {
	err := protojson.Unmarshal(body, m)
	if err == nil {
		return nil
	}
	// It says where, and shows what is there, of any length.
	message := strings.TrimLeft(strings.TrimPrefix(strings.ToValidUTF8(err.Error(), "\uFFFD"), "proto:"), " \u00a0")
	field := ""
	if found := fieldName.FindStringSubmatch(message); found != nil {
		field = found[1]
	}
	if runes := []rune(message); len(runes) > maxMessage {
		message = string(runes[:maxMessage]) + "…"
	}
	return invalid(field, "the body is not the JSON of this call: "+message)
}

// maxMessage bounds what is said of a body.
const maxMessage = 200

// encode returns the JSON form of a message. Fields are there also if they are zero or
// empty, for programs that know nothing of the proto files.
func encode(m proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
}
