package main

import "github.com/spf13/cobra"

func (a *app) serveCommand() *cobra.Command {
	return &cobra.Command{Use: "serve", GroupID: groupServer}
}
func (a *app) devCommand() *cobra.Command { return &cobra.Command{Use: "dev", GroupID: groupServer} }
func (a *app) certsCommand() *cobra.Command {
	return &cobra.Command{Use: "certs", GroupID: groupServer}
}
