// Command consulagent is a Consul agent for tests: `agent` and `version` of Consul's own commands. Its other commands
// need a newer client module than the one that this version of Consul is built with, and the tests use its HTTP API.
package main

import (
	"fmt"
	"io"
	"log"
	"os"

	mcli "github.com/mitchellh/cli"

	"github.com/hashicorp/consul/command/agent"
	"github.com/hashicorp/consul/command/cli"
	"github.com/hashicorp/consul/command/version"
)

func main() {
	log.SetOutput(io.Discard) // the agent has a logger of its own

	ui := &cli.BasicUI{BasicUi: mcli.BasicUi{Writer: os.Stdout, ErrorWriter: os.Stderr}}
	app := &mcli.CLI{
		Name: "consulagent",
		Args: os.Args[1:],
		Commands: map[string]mcli.CommandFactory{
			"agent":   func() (mcli.Command, error) { return agent.New(ui), nil },
			"version": func() (mcli.Command, error) { return version.New(ui), nil },
		},
	}
	code, err := app.Run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "consulagent:", err)
		code = 1
	}
	os.Exit(code)
}
