// Package deploy tests the files of the folder deploy with the libraries and programs that read
// them: the parser of Compose, that of BuildKit, Helm with the types of Kubernetes, Caddy, systemd and
// promtool. Nothing is built or started: that needs a container engine, or a cluster.
package deploy
