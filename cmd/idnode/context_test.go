package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
)

// nodeCalled starts a node whose identities have its name.
func nodeCalled(t *testing.T, name string) string {
	return newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		switch req.(type) {
		case *idnodev1.GenerateRequest:
			return &idnodev1.GenerateResponse{Ids: []string{name}}, nil
		case *idnodev1.GetStatusRequest:
			return &idnodev1.GetStatusResponse{}, nil
		case *idnodev1.RemoveMemberRequest:
			return &idnodev1.RemoveMemberResponse{}, nil
		case *idnodev1.UpdateSettingRequest:
			return &idnodev1.UpdateSettingResponse{}, nil
		default:
			return &idnodev1.DeleteIdentityResponse{}, nil
		}
	}).addr
}

// TestContexts: which connection a command takes, of flags, variables and contexts.
func TestContexts(t *testing.T) {
	home := "XDG_CONFIG_HOME=" + t.TempDir()
	prod, test, other := nodeCalled(t, "prod"), nodeCalled(t, "test"), nodeCalled(t, "other")
	nobody := "IDNODE_ENDPOINTS=" + unusedAddr(t)
	for _, tt := range []struct {
		line string
		env  string // a further variable
		code int
		want string // a part of what is printed
	}{
		{"context list", "", exitOK, ""},
		{"context save prod", "", exitUsage, "--endpoint is required"},
		{"context save a/b --endpoint x:1", "", exitUsage, "a context's name has"},
		{"context save prod --endpoint nowhere", "", exitUsage, "is not HOST:PORT"},
		{"context save prod --endpoint x:1 --tls-ca /not/there", "", exitUsage, "/not/there"},
		{"context save prod --endpoint " + prod, "", exitOK, ""},
		{"context save test", "IDNODE_ENDPOINTS=" + test, exitOK, ""},
		{"context list", "", exitOK, "prod  " + prod + "\ntest  " + test + "\n"},
		{"context show test", "", exitOK, "endpoint: ['" + test + "']\n"},
		{"context use prdo", "", exitUsage, `there is no context "prdo"`},
		{"next users|", nobody, exitUnavailable, "cannot reach"},
		{"next users| --context test", nobody, exitOK, "test\n"},
		{"next users|", "IDNODE_CONTEXT=test", exitOK, "test\n"},
		{"next users| --context prod", "IDNODE_CONTEXT=test", exitOK, "prod\n"},
		{"next users| --context tesst", "", exitUsage, `did you mean "test"?`},
		{"context use prod", "", exitOK, ""},
		{"context list", "", exitOK, "prod  " + prod + "  in use\n"},
		{"next users|", "", exitOK, "prod\n"},
		{"next users| --endpoint " + other, "", exitOK, "other\n"},
		{"next users|", "IDNODE_ENDPOINTS=" + other, exitOK, "other\n"},
		{"next users| --context test --endpoint " + other, "", exitOK, "other\n"},
		{"cluster status", "", exitOK, "context  prod\n"},
		{"cluster remove C --yes", "", exitOK, "idnode: in context prod: " + prod + "\n"},
		{"cluster set max-claims 5 --context test", "", exitOK, "idnode: in context test: " + test + "\n"},
		{"identity delete users --forget --yes", "", exitOK, "idnode: in context prod: "},
		{"context use", "", exitOK, ""},
		{"context use prod", "", exitOK, ""},
		{"context delete prod --yes", "", exitOK, ""},
		{"context list", "", exitOK, "test  " + test + "\n"},
		{"next users| --context prod", "", exitUsage, `there is no context "prod"`},
	} {
		got := commandEnv(t, []string{home, tt.env}, strings.Fields(tt.line)...)
		if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("%s %s: %+v, want exit code %d and %q", tt.env, tt.line, got, tt.code, tt.want)
		}
	}
}

// TestContextFile: it is its owner's alone, has paths of keys and no key, and a slip in it is no
// other cluster.
func TestContextFile(t *testing.T) {
	home := t.TempDir()
	env := []string{"HOME=" + home}
	if got := command(t, "certs", filepath.Join(home, "pki"), "--client", "operator"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	t.Chdir(home)
	saved := commandEnv(t, env, "context", "save", "prod", "--endpoint", "10.0.0.1:7400,10.0.0.2:7400",
		"--tls-ca", "pki/ca.crt", "--tls-cert", "pki/operator.crt", "--tls-key", "pki/operator.key", "--tls-server-name", "a")
	if saved.code != exitOK {
		t.Fatalf("%+v", saved)
	}
	path := filepath.Join(home, ".config", "idnode", "contexts.yaml")
	for file, mode := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want %v", file, info, err, mode)
		}
	}
	want := `contexts:
    prod:
        endpoint: ['10.0.0.1:7400', '10.0.0.2:7400']
        tls-ca: HOME/pki/ca.crt
        tls-cert: HOME/pki/operator.crt
        tls-key: HOME/pki/operator.key
        tls-server-name: a
`
	if text := string(mustRead(t, path)); text != strings.ReplaceAll(want, "HOME", home) {
		t.Errorf("%s", text)
	}
	if err := os.WriteFile(path, []byte("curent: prod"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := commandEnv(t, env, "next", "users|"); got.code != exitUsage || !strings.Contains(got.stderr, "there is no key curent") {
		t.Errorf("%+v", got)
	}
	got := command(t, "context", "save", "prod", "--endpoint", "x:1")
	if got.code != exitUsage || !strings.Contains(got.stderr, "neither is set") {
		t.Errorf("without a home: %+v", got)
	}
}

// TestContextOfANewerProgram: it is neither used nor replaced, and stays whole where another is saved.
func TestContextOfANewerProgram(t *testing.T) {
	home, old := t.TempDir(), nodeCalled(t, "old")
	path := filepath.Join(home, "idnode", "contexts.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	newer := "    newer:\n        endpoint: ['x:1']\n        proxy:\n            - {url: y}\n"
	if err := os.WriteFile(path, []byte("contexts:\n"+newer+"    old:\n        endpoint: ['"+old+"']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const refused = `the context "newer" has a key that this program does not know: proxy`
	for line, want := range map[string]string{
		"context list": "newer  x:1\n", "next users| --context old": "old\n", "context save third --endpoint " + old: "",
		"next users| --context newer": refused, "context use newer": refused, "context save newer --yes --endpoint " + old: refused,
	} {
		got := commandEnv(t, []string{"XDG_CONFIG_HOME=" + home}, strings.Fields(line)...)
		if (got.code == exitUsage) != (want == refused) || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("%s: %+v, want %s", line, got, want)
		}
	}
	if text := string(mustRead(t, path)); !strings.Contains(text, "proxy:\n            - url: \"y\"\n") || !strings.Contains(text, "third:") {
		t.Errorf("%s", text)
	}
}

// TestConfirmNamesTheCluster that a question is about.
func TestConfirmNamesTheCluster(t *testing.T) {
	node := newFakeNode(t, answer(&idnodev1.GetStatusResponse{ClusterId: "c1d2", Self: &idnodev1.Member{Tag: "A"}}))
	var asked strings.Builder
	s := &clusterClient{connection: connection{Endpoints: []string{node.addr}}, timeout: defaultTimeout, context: "prod", stderr: &asked}
	defer s.close()
	sure := &confirmation{person: true, in: strings.NewReader("yes\n"), err: &asked}
	if err := s.confirm(context.Background(), sure, "Removes C."); err != nil {
		t.Fatal(err)
	}
	want := "idnode: in context prod: " + node.addr + "\nRemoves C. This is cluster c1d2, by its node A. Type yes to go on: "
	if asked.String() != want {
		t.Errorf("asked %q, want %q", asked.String(), want)
	}
}
