// Command kubernetes is every part of a cluster in one executable. The first argument names the part, the others are its own.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var parts = map[string]func() *cobra.Command{
	"apiserver":   apiserver.NewAPIServerCommand,
	"controllers": controllers.NewControllerManagerCommand,
	"kubectl":     cmd.NewDefaultKubectlCommand,
	"kubelet":     func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"scheduler":   func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func main() {
	if len(os.Args) > 1 {
		os.Args = os.Args[1:]
		if os.Args[0] == "etcd" {
			etcdmain.Main(os.Args)
			return
		}
		if part, ok := parts[os.Args[0]]; ok {
			os.Exit(cli.Run(part()))
		}
	}
	fmt.Fprintln(os.Stderr, "usage: kubernetes etcd|apiserver|controllers|scheduler|kubelet|kubectl [argument ...]")
	os.Exit(2)
}
