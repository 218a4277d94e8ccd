// Command manifests reads Kubernetes manifests as the API server would with
// strict validation of fields: a key that the API does not know, a value of
// another type or a kind that is not known is an error, and so are pods that the
// restricted pod security standard does not allow. It needs no cluster.
//
//	go run . ../../deploy/kubernetes/{,cert-manager,recover}/*.yaml
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) == 0 {
		return errors.New("usage: manifests FILE.yaml …")
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apps.AddToScheme, batch.AddToScheme, certmanager.AddToScheme, core.AddToScheme, monitoring.AddToScheme,
		networking.AddToScheme, policy.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var problems []error
	for _, file := range files {
		if err := check(decoder, file); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", file, err))
		}
	}
	return errors.Join(problems...)
}

// check decodes each document of a file.
func check(decoder runtime.Decoder, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		object, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return err
		}
		named, ok := object.(meta.Object)
		if !ok || named.GetName() == "" {
			return fmt.Errorf("a %s without a name", kind.Kind)
		}
		if err := restricted(object); err != nil {
			return err
		}
		fmt.Printf("%s: %s %s\n", file, kind.Kind, named.GetName())
	}
}
