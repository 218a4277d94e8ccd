package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"
)

// kubectl stands for the program of that name, and for a cluster that knows what the pages need:
// secrets, one ConfigMap, claims, and pods, which are processes of this machine. It keeps them in
// the folder it is called in. A host name of a pod is an address that KUBE_NET begins.
type kubectl struct{ pods, claims, secrets, config string }

func newKubectl() kubectl {
	return kubectl{"kube/pods", "kube/claims", "kube/secrets", "kube/idnode.yaml"}
}

// object is the part of a manifest that is looked at.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		pod      `yaml:",inline"`
		Template struct{ Spec pod }
	}
}

type pod struct {
	Containers []struct {
		Args   []string
		Env    []struct{ Name, Value string }
		Mounts []struct {
			Name string
			Path string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
	Volumes []struct {
		Name   string
		Secret struct {
			Name string `yaml:"secretName"`
		}
		Config struct{ Name string } `yaml:"configMap"`
		Claim  struct {
			Name string `yaml:"claimName"`
		} `yaml:"persistentVolumeClaim"`
	}
}

// run does one command of those in the pages.
func (k kubectl) run(args []string) error {
	if len(args) > 2 && args[0] == "-n" {
		args = args[2:]
	}
	switch verb, args := args[0], args[1:]; verb {
	case "create":
		return k.secret(args[2], args[3:])
	case "apply":
		return k.apply(args[1])
	case "scale":
		return k.scale(args)
	case "delete":
		return k.remove(args[0], args[1:])
	case "wait":
		return k.wait(args)
	case "logs":
		log, err := os.ReadFile(filepath.Join(k.pods, args[0], "log"))
		fmt.Print(string(log))
		return err
	case "exec":
		cmd, err := k.command(args[0], args[3:])
		if err != nil {
			return err
		}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	default:
		return fmt.Errorf("kubectl %s is not known here", verb)
	}
}

func (k kubectl) secret(name string, files []string) error {
	dir := filepath.Join(k.secrets, name)
	err := os.MkdirAll(dir, 0o700)
	for _, file := range files {
		key, path, _ := strings.Cut(strings.TrimPrefix(file, "--from-file="), "=")
		text, readErr := os.ReadFile(path)
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(dir, key), text, 0o600))
	}
	return err
}

// apply takes the manifests of a file, or of a folder without those below it.
func (k kubectl) apply(path string) error {
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		files, _ = filepath.Glob(filepath.Join(path, "*.yaml"))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
			var o object
			if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if err := k.take(o); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

func (k kubectl) take(o object) error {
	switch o.Kind {
	case "ConfigMap":
		return os.WriteFile(k.config, []byte(o.Data["idnode.yaml"]), 0o600)
	case "StatefulSet":
		name := o.Metadata.Name + "-0"
		if err := k.keep(name, o.Spec.Template.Spec); err != nil {
			return err
		}
		return k.start(name)
	case "Pod":
		if err := k.keep(o.Metadata.Name, o.Spec.pod); err != nil {
			return err
		}
		cmd, err := k.command(o.Metadata.Name, nil)
		if err != nil {
			return err
		}
		log, err := cmd.CombinedOutput()
		return errors.Join(err, os.WriteFile(filepath.Join(k.pods, o.Metadata.Name, "log"), log, 0o600))
	}
	return nil
}

func (k kubectl) keep(name string, p pod) error {
	text, err := yaml.Marshal(p)
	return errors.Join(err, os.MkdirAll(filepath.Join(k.pods, name), 0o700), os.WriteFile(filepath.Join(k.pods, name, "pod"), text, 0o600))
}

// command is what a pod's container runs, or another one in its place, with the paths and
// addresses that those in the pod are here.
func (k kubectl) command(name string, args []string) (*exec.Cmd, error) {
	text, err := os.ReadFile(filepath.Join(k.pods, name, "pod"))
	if err != nil {
		return nil, err
	}
	var p pod
	if err := yaml.Unmarshal(text, &p); err != nil {
		return nil, err
	}
	here, err := k.paths(name, p)
	if err != nil {
		return nil, err
	}
	own := ""
	if letter, ok := strings.CutPrefix(name, "idnode-"); ok {
		own = address(letter[:1])
	}
	translate := strings.NewReplacer(append(here, "$(POD_NAME).idnode-nodes.idnode.svc", own, "0.0.0.0", own)...).Replace
	config, err := os.ReadFile(k.config)
	config = []byte(named(translate(string(config))))
	if err := errors.Join(err, os.WriteFile(filepath.Join(k.pods, name, "idnode.yaml"), config, 0o600)); err != nil {
		return nil, err
	}
	container := p.Containers[0]
	if args == nil {
		args = container.Args
	}
	cmd := exec.Command("idnode")
	for _, arg := range args {
		cmd.Args = append(cmd.Args, translate(arg))
	}
	cmd.Env = []string{"IDNODE_ENDPOINTS=" + own + ":7400"}
	if args[0] == "serve" || args[0] == "recover" {
		cmd.Env = nil
	}
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"))
	for _, e := range container.Env {
		if e.Value != "" {
			cmd.Env = append(cmd.Env, e.Name+"="+translate(e.Value))
		}
	}
	return cmd, nil
}

// paths are the folders of a pod with those that they are here, in turn.
func (k kubectl) paths(name string, p pod) (pairs []string, err error) {
	where := map[string]string{"data": filepath.Join(k.claims, "data-"+name)}
	for _, v := range p.Volumes {
		switch {
		case v.Secret.Name != "":
			where[v.Name] = filepath.Join(k.secrets, v.Secret.Name)
		case v.Claim.Name != "":
			where[v.Name] = filepath.Join(k.claims, v.Claim.Name)
		default:
			where[v.Name] = filepath.Join(k.pods, name)
		}
	}
	for _, m := range p.Containers[0].Mounts {
		if where[m.Name] == "" {
			return nil, fmt.Errorf("pod %s has no volume %s", name, m.Name)
		}
		pairs = append(pairs, m.Path, where[m.Name])
	}
	return pairs, os.MkdirAll(where["data"], 0o700)
}

func (k kubectl) start(name string) error {
	if k.pid(name) > 0 {
		return nil
	}
	cmd, err := k.command(name, nil)
	if err != nil {
		return err
	}
	log, err := os.Create(name + ".log")
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	return os.WriteFile(name+".pid", []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
}

// pid is the process of a pod that runs, or 0.
func (k kubectl) pid(name string) int {
	text, _ := os.ReadFile(name + ".pid")
	pid, _ := strconv.Atoi(string(text))
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); pid == 0 || err != nil {
		return 0
	}
	return pid
}

func (k kubectl) stop(name string) {
	if pid := k.pid(name); pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	for k.pid(name) > 0 {
		<-time.After(20 * time.Millisecond)
	}
}

func (k kubectl) scale(args []string) error {
	var names []string
	for _, arg := range args {
		if name, ok := strings.CutPrefix(arg, "statefulset/"); ok {
			names = append(names, name+"-0")
		}
	}
	if slices.Contains(args, "--all") {
		entries, err := os.ReadDir(k.pods)
		if err != nil {
			return err
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		if !slices.Contains(args, "--replicas=0") {
			if err := k.start(name); err != nil {
				return err
			}
			continue
		}
		k.stop(name)
	}
	return nil
}

func (k kubectl) remove(kind string, names []string) error {
	for _, name := range names {
		dir := map[string]string{"statefulset": k.pods + "/" + name + "-0", "pod": k.pods + "/" + name, "pvc": k.claims + "/" + name}[kind]
		if _, err := os.Stat(dir); err != nil {
			return err
		}
		if kind == "statefulset" {
			k.stop(name + "-0")
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for the one condition that takes time here: all else is done when its command ends.
func (k kubectl) wait(args []string) error {
	if !slices.Contains(args, "--for=condition=Ready") {
		return nil
	}
	for _, arg := range args {
		name, ok := strings.CutPrefix(arg, "pod/")
		for ready := !ok; !ready; <-time.After(50 * time.Millisecond) {
			cmd, err := k.command(name, []string{"health", "--timeout=1s"})
			if err != nil {
				return err
			}
			ready = cmd.Run() == nil
		}
	}
	return nil
}

// address is that of the pod of a node, whose host names have the letter.
func address(letter string) string {
	return fmt.Sprintf("%s.%d", os.Getenv("KUBE_NET"), 11+letter[0]-'a')
}

// named puts addresses in place of the host names of pods.
func named(text string) string {
	for letter := 'a'; letter <= 'e'; letter++ {
		text = strings.ReplaceAll(text, fmt.Sprintf("idnode-%c-0.idnode-nodes.idnode.svc", letter), address(string(letter)))
	}
	return text
}
