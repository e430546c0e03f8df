package deploy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
)

var chartFolder = filepath.Join(folder, "helm/stonetown")

// release is what the chart makes. Objects that it does not make are nil.
type release struct {
	deployment apps.Deployment
	services   map[string]core.Service
	ingress    *networking.Ingress
	policy     *networking.NetworkPolicy
	budget     *policy.PodDisruptionBudget
	monitor    *monitoring.ServiceMonitor
	notes      string
}

// render makes a release with values. The objects are decoded strictly: a member that Kubernetes does
// not have is an error.
func render(t *testing.T, values string) (r release, err error) {
	t.Helper()
	c, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: "auth", Namespace: "identity", IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return r, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return r, err
	}
	r.services = map[string]core.Service{}
	for name, text := range files {
		name = filepath.Base(name)
		if name == "NOTES.txt" {
			r.notes = text
			continue
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		var service core.Service
		var into any
		switch name {
		case "deployment.yaml":
			into = &r.deployment
		case "service.yaml", "pods.yaml":
			into = &service
		case "ingress.yaml":
			r.ingress = new(networking.Ingress)
			into = r.ingress
		case "networkpolicy.yaml":
			r.policy = new(networking.NetworkPolicy)
			into = r.policy
		case "poddisruptionbudget.yaml":
			r.budget = new(policy.PodDisruptionBudget)
			into = r.budget
		case "servicemonitor.yaml":
			r.monitor = new(monitoring.ServiceMonitor)
			into = r.monitor
		default:
			t.Fatalf("%s is of no known kind", name)
		}
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if service.Name != "" {
			r.services[service.Name] = service
		}
	}
	return r, nil
}

func mustRender(t *testing.T, values string) release {
	t.Helper()
	r, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestChartIsLinted(t *testing.T) {
	result := lint.RunAll(chartFolder, nil, "identity")
	for _, m := range result.Messages {
		if m.Severity > support.InfoSev {
			t.Error(m)
		}
	}
}

func TestChart(t *testing.T) {
	r := mustRender(t, "")
	pod := r.deployment.Spec.Template.Spec
	c := pod.Containers[0]
	if *r.deployment.Spec.Replicas != 2 || len(r.services) != 2 || r.policy == nil || r.budget == nil || r.ingress != nil || r.monitor != nil {
		t.Errorf("%d replicas, services %v", *r.deployment.Spec.Replicas, slices.Collect(maps.Keys(r.services)))
	}
	if s := pod.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser != 65532 || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod's security: %+v", s)
	}
	if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || *pod.AutomountServiceAccountToken {
		t.Errorf("the container's security: %+v", s)
	}
	if grace := *pod.TerminationGracePeriodSeconds; grace <= 5+30 {
		t.Errorf("a process is killed after %d s, before drain_delay and drain_timeout", grace)
	}
	if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz" || c.StartupProbe == nil {
		t.Errorf("probes %v, %v", c.ReadinessProbe, c.LivenessProbe)
	}
	env := map[string]core.EnvVar{}
	for i, e := range c.Env {
		env[e.Name] = e
		if e.Name == "STONETOWN_LEASE_ADDRESS" && !slices.ContainsFunc(c.Env[:i], func(e core.EnvVar) bool { return e.Name == "POD_IP" }) {
			t.Error("the address of leases is set before POD_IP, so it is not replaced there")
		}
	}
	if env["POD_IP"].ValueFrom.FieldRef.FieldPath != "status.podIP" || env["STONETOWN_LEASE_ADDRESS"].Value != "$(POD_IP):7070" {
		t.Errorf("the address of leases is %v", env["STONETOWN_LEASE_ADDRESS"])
	}
	// The files that the settings name are those of the volume.
	paths := map[string]string{} // to the secret and its key
	for _, source := range pod.Volumes[0].Projected.Sources {
		paths[c.VolumeMounts[0].MountPath+"/"+source.Secret.Items[0].Path] = source.Secret.Name + "/" + source.Secret.Items[0].Key
	}
	if got := [2]string{paths[env["STONETOWN_MASTER_KEY_FILE"].Value], paths[env["STONETOWN_DATABASE_URL_FILE"].Value]}; got != [2]string{"stonetown/master-key", "stonetown/database-url"} {
		t.Errorf("secrets %q of %v", got, paths)
	}
	for _, e := range c.Env {
		if strings.Contains(e.Value, "postgres:") || e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			t.Errorf("%s has a secret", e.Name)
		}
	}
	// Only pods of the release reach the listener of leases, and no one that of metrics.
	reached := map[string]int{}
	for _, rule := range r.policy.Spec.Ingress {
		reached[rule.Ports[0].Port.StrVal] = len(rule.From)
		if rule.Ports[0].Port.StrVal == "leases" && !maps.Equal(rule.From[0].PodSelector.MatchLabels, r.deployment.Spec.Selector.MatchLabels) {
			t.Errorf("leases are reached by %v", rule.From)
		}
	}
	if !maps.Equal(reached, map[string]int{"http": 0, "leases": 1}) {
		t.Errorf("reached: %v", reached)
	}
	// Services, the budget and the policy are about the pods.
	for name, s := range r.services {
		selects(t, name, s.Spec.Selector, r.deployment)
		for _, p := range s.Spec.Ports {
			if !slices.ContainsFunc(c.Ports, func(port core.ContainerPort) bool { return port.Name == p.TargetPort.StrVal }) {
				t.Errorf("%s has the port %v, which the pod has not", name, p)
			}
		}
	}
	if r.services["auth-pods"].Spec.ClusterIP != core.ClusterIPNone || r.services["auth"].Spec.ClusterIP == core.ClusterIPNone {
		t.Error("the name of the pods does not resolve to each pod")
	}
	selects(t, "the budget", r.budget.Spec.Selector.MatchLabels, r.deployment)
	selects(t, "the policy", r.policy.Spec.PodSelector.MatchLabels, r.deployment)
	if !strings.Contains(r.notes, "trustedProxies is empty") {
		t.Errorf("notes:\n%s", r.notes)
	}
}

func selects(t *testing.T, name string, selector map[string]string, d apps.Deployment) {
	t.Helper()
	for key, value := range selector {
		if d.Spec.Template.Labels[key] != value {
			t.Errorf("%s selects %v, and the pods have %v", name, selector, d.Spec.Template.Labels)
		}
	}
	if len(selector) == 0 {
		t.Errorf("%s selects all pods", name)
	}
}

func TestChartWithEverything(t *testing.T) {
	r := mustRender(t, `
replicas: 3
leases: {enabled: false}
trustedProxies: [10.0.0.0/8, 192.168.0.0/16]
settings: {access_log: true, idle_after: 30m, resident_memory_mib: 10000000, trace_sample: 0.5, rate_limits: "token.ip=120/min"}
secretFiles: [{setting: mail_password_file, secretName: mail, key: password}]
ingress: {enabled: true, className: nginx, annotations: {a: b}, hosts: [acme.example.com, "*.example.com"], tls: [{secretName: tls, hosts: ["*.example.com"]}]}
networkPolicy:
  clients: [{namespaceSelector: {matchLabels: {name: ingress}}}]
  monitoring: [{namespaceSelector: {matchLabels: {name: monitoring}}}]
serviceMonitor: {enabled: true, labels: {release: prometheus}}
nodeSelector: {kubernetes.io/arch: amd64}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
podAnnotations: {c: d}
imagePullSecrets: [{name: registry}]
`)
	c := r.deployment.Spec.Template.Spec.Containers[0]
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	for name, want := range map[string]string{
		"STONETOWN_TRUSTED_PROXIES": "10.0.0.0/8,192.168.0.0/16", "STONETOWN_ACCESS_LOG": "true", "STONETOWN_IDLE_AFTER": "30m",
		"STONETOWN_RESIDENT_MEMORY_MIB": "10000000", "STONETOWN_TRACE_SAMPLE": "0.5", "STONETOWN_RATE_LIMITS": "token.ip=120/min",
		"STONETOWN_MAIL_PASSWORD_FILE": "/run/secrets/stonetown/mail_password_file",
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	configuration, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range env {
		if !regexp.MustCompile("`" + name + "`").Match(configuration) {
			t.Errorf("%s is no setting", name)
		}
	}
	if env["STONETOWN_LEASE_LISTEN"] != "" || len(c.Ports) != 2 || len(r.policy.Spec.Ingress) != 2 || len(r.policy.Spec.Ingress[0].From) != 1 {
		t.Errorf("without leases: %v, %v", c.Ports, r.policy.Spec.Ingress)
	}
	if rules := r.ingress.Spec.Rules; len(rules) != 2 || rules[0].HTTP.Paths[0].Backend.Service.Name != "auth" || r.ingress.Spec.TLS[0].SecretName != "tls" || *r.ingress.Spec.IngressClassName != "nginx" {
		t.Errorf("ingress %+v", r.ingress.Spec)
	}
	labels := r.monitor.Spec.Selector.MatchLabels
	for name, s := range r.services {
		if matches := fmt.Sprint(labels) == fmt.Sprint(intersection(labels, s.Labels)); matches != (name == "auth-pods") {
			t.Errorf("metrics are read from %s: %v", name, matches)
		}
	}
	if !slices.ContainsFunc(r.services["auth-pods"].Spec.Ports, func(p core.ServicePort) bool { return p.Name == r.monitor.Spec.Endpoints[0].Port }) {
		t.Errorf("there is no port %s", r.monitor.Spec.Endpoints[0].Port)
	}
	if strings.Contains(r.notes, "trustedProxies is empty") || !strings.Contains(r.notes, "https://acme.example.com") {
		t.Errorf("notes:\n%s", r.notes)
	}
	if one := mustRender(t, "{replicas: 1, networkPolicy: {enabled: false}}"); one.budget != nil || one.policy != nil {
		t.Error("a single process has a budget, which no node can be drained with")
	}
}

func intersection(a, b map[string]string) map[string]string {
	both := map[string]string{}
	for key, value := range a {
		if b[key] == value {
			both[key] = value
		}
	}
	return both
}

func TestChartRefuses(t *testing.T) {
	for _, values := range []string{
		"replicas: 0", "replica: 3", "masterKey: {secretName: ''}", "masterKey: {value: secret}", "settings: {database_url: x}", "settings: {ACCESS_LOG: true}",
		"settings: {lease_listen: x}", "trustedProxies: [10.0.0.1]", "ingress: {enabled: true}", "secretFiles: [{setting: mail_url, secretName: a, key: b}]", "image: {tag: ''}",
	} {
		if _, err := render(t, values); err == nil {
			t.Errorf("%s is accepted", values)
		}
	}
}
