package webpage

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

var (
	ofServices = regexp.MustCompile(`export const \[([^\]]*)\] = \[([^\]]*)\]\.map\(\(service\)`)
	ofMethod   = regexp.MustCompile(`\b(of[A-Z]\w*|change)\("(\w+)"`)
)

// TestMethodsExist: each method of the public API that a script of the page calls is one.
func TestMethodsExist(t *testing.T) {
	scripts := map[string]string{}
	files, err := fs.Glob(assets, "assets/*.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(assets, file)
		if err != nil {
			t.Fatal(err)
		}
		scripts[file] = string(text)
	}
	found := ofServices.FindStringSubmatch(scripts["assets/api.js"])
	if found == nil {
		t.Fatal("api.js names no services")
	}
	services := map[string]string{}
	names := strings.Split(strings.ReplaceAll(found[2], `"`, ""), ", ")
	for i, of := range strings.Split(found[1], ", ") {
		services[of] = names[i]
	}
	services["change"] = "Ids"
	calls := 0
	for file, text := range scripts {
		for _, call := range ofMethod.FindAllStringSubmatch(text, -1) {
			method := protoreflect.FullName("idnode.v1." + services[call[1]] + "Service." + call[2])
			if _, err := protoregistry.GlobalFiles.FindDescriptorByName(method); err != nil {
				t.Errorf("%s calls %s: %v", file, method, err)
			}
			calls++
		}
	}
	if calls < 20 {
		t.Errorf("%d calls were found", calls)
	}
}
