package main

import (
	"fmt"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	security "k8s.io/pod-security-admission/api"
	standards "k8s.io/pod-security-admission/policy"
)

// restricted refuses what makes pods that are more than the pod security standard of
// that name allows.
func restricted(object runtime.Object) error {
	var pod core.PodTemplateSpec
	switch o := object.(type) {
	case *apps.StatefulSet:
		pod = o.Spec.Template
	case *batch.CronJob:
		pod = o.Spec.JobTemplate.Spec.Template
	case *core.Pod:
		pod = core.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
	default:
		return nil
	}
	evaluator, err := standards.NewEvaluator(standards.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	level := security.LevelVersion{Level: security.LevelRestricted, Version: security.LatestVersion()}
	verdict := standards.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
	if !verdict.Allowed {
		return fmt.Errorf("its pods are not restricted: %s", verdict.ForbiddenDetail())
	}
	return nil
}
