package main

import (
	"fmt"

	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	security "k8s.io/pod-security-admission/api"
	standards "k8s.io/pod-security-admission/policy"
)

// restricted refuses a StatefulSet whose pods are more than the pod security
// standard of that name allows.
func restricted(object runtime.Object) error {
	set, ok := object.(*apps.StatefulSet)
	if !ok {
		return nil
	}
	evaluator, err := standards.NewEvaluator(standards.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	level := security.LevelVersion{Level: security.LevelRestricted, Version: security.LatestVersion()}
	pod := set.Spec.Template
	verdict := standards.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
	if !verdict.Allowed {
		return fmt.Errorf("the pods of %s are not restricted: %s", set.Name, verdict.ForbiddenDetail())
	}
	return nil
}
