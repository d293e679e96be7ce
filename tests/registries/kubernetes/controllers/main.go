// Command kubecontrollers is Kubernetes' controller manager as it is. The tests start it with the controllers that they
// need: those that make endpoint slices, and those that clean up.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() { os.Exit(cli.Run(app.NewControllerManagerCommand())) }
