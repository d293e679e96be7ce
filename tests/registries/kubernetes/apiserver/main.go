// Command kubeapiserver is a Kubernetes API server for tests: the server of k8s.io/kubernetes as it is, and an etcd, in one
// process. It listens on loopback only, and all that it writes is in one folder.
//
//	kubeapiserver --dir DIR [--port N] [--stdin] [-- flags of kube-apiserver]
//
// Once it answers /readyz with 200 it prints
//
//	READY https://127.0.0.1:PORT DIR/kubeconfig
//
// That kubeconfig is an administrator's; DIR/kubeconfig-nobody is that of a user who may do nothing. Started again on the
// same folder and port it is the same server: data, certificate and tokens stay.
//
// It stops on SIGTERM and SIGINT; with --stdin also when its standard input ends.
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	_ "time/tzdata"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	dir := flag.String("dir", "", "folder for all that it writes; made if missing")
	port := flag.Int("port", 0, "port on 127.0.0.1; 0 is a free one")
	stdin := flag.Bool("stdin", false, "stop when standard input ends")
	flag.Parse()
	if *dir == "" {
		fail(2, fmt.Errorf("--dir is required"))
	}
	folder, err := filepath.Abs(*dir)
	must(err)
	must(os.MkdirAll(folder, 0o700))
	in := func(name string) string { return filepath.Join(folder, name) }
	if *port == 0 {
		*port = freePort()
	}

	etcd, endpoint, err := startEtcd(folder)
	must(err)
	must(ensureKey(in("sa.key")))
	admin, err := ensureToken(in("admin.token"))
	must(err)
	nobody, err := ensureToken(in("nobody.token"))
	must(err)
	users := admin + ",admin,admin,\"system:masters\"\n" + nobody + ",nobody,nobody\n"
	must(os.WriteFile(in("tokens.csv"), []byte(users), 0o600))

	server := "https://127.0.0.1:" + strconv.Itoa(*port)
	go announce(folder, server, admin, nobody)
	if *stdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		}()
	}

	command := app.NewAPIServerCommand() // handles SIGTERM and SIGINT by itself
	command.SetArgs(append([]string{
		"--etcd-servers=" + endpoint,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--secure-port=" + strconv.Itoa(*port),
		"--cert-dir=" + in("certs"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + in("sa.key"),
		"--service-account-key-file=" + in("sa.key"),
		"--service-cluster-ip-range=10.0.0.0/16,fd00::/112", // both families: services may be dual stack
		"--authorization-mode=RBAC",
		"--token-auth-file=" + in("tokens.csv"),
		"--disable-admission-plugins=ServiceAccount", // pods need no account of their own
		"--allow-privileged=true",
		"--shutdown-watch-termination-grace-period=1s", // the default waits up to a minute for open watches
	}, flag.Args()...)) // the last of equal flags counts: a test may replace any of these
	code := cli.Run(command)
	etcd.Close()
	os.Exit(code)
}

// startEtcd runs an etcd of one member in folder and gives its address. It listens on unix sockets there, which take
// no port and let nobody else in.
func startEtcd(folder string) (*embed.Etcd, string, error) {
	socket := func(name string) url.URL { return url.URL{Scheme: "unix", Path: filepath.Join(folder, name)} }
	client, peer := socket("etcd.sock"), socket("peer.sock")
	for _, left := range []string{client.Path, peer.Path} {
		_ = os.Remove(left) // by a run that was killed
	}
	wal.SegmentSizeBytes = 4 << 20 // two of these files are made in advance, of 64 MB each by default
	config := embed.NewConfig()
	config.Name = "test"
	config.Dir = filepath.Join(folder, "etcd")
	config.ListenClientUrls = []url.URL{client}
	config.AdvertiseClientUrls = []url.URL{client}
	config.ListenPeerUrls = []url.URL{peer}
	config.AdvertisePeerUrls = []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true                      // nobody needs a test's data after a power cut
	config.TickMs, config.ElectionMs = 50, 250       // the only member need not wait for others
	config.WatchProgressNotifyInterval = time.Second // without it, watches of kinds that do not change get no bookmarks
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(zapcore.NewCore(
		zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), zapcore.Lock(os.Stderr), zap.WarnLevel)))
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, "", err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, client.String(), age(etcd, 1000)
	case err := <-etcd.Err():
		return nil, "", err
	case <-time.After(30 * time.Second):
		etcd.Close()
		return nil, "", fmt.Errorf("etcd was not ready within 30 s")
	}
}

// age brings the store's revision to n and compacts all before it, so that there is a past that nobody can watch from
// any more. In a fresh store the API server remembers every change, and no watch would ever be answered with 410.
func age(etcd *embed.Etcd, n int64) error {
	client := v3client.New(etcd.Server)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		put, err := client.Put(ctx, "/test/age", "")
		if err != nil {
			return err
		}
		if put.Header.Revision >= n {
			_, err := client.Compact(ctx, put.Header.Revision)
			return err
		}
	}
}

// announce waits until the server is ready, then writes the kubeconfigs and prints the line that says so.
func announce(folder, server, admin, nobody string) {
	ca := filepath.Join(folder, "certs", "apiserver.crt") // signed by itself
	for !ready(server, ca, admin) {
		time.Sleep(20 * time.Millisecond)
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	must(writeKubeconfig(kubeconfig+"-nobody", server, ca, "nobody", nobody))
	must(writeKubeconfig(kubeconfig, server, ca, "admin", admin))
	fmt.Printf("READY %s %s\n", server, kubeconfig)
}

func ready(server, ca, token string) bool {
	certificate, err := os.ReadFile(ca)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(certificate) {
		return false
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	request, err := http.NewRequest("GET", server+"/readyz", nil)
	must(err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Timeout: 5 * time.Second, Transport: transport}).Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func writeKubeconfig(path, server, ca, user, token string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
contexts:
- name: test
  context: {cluster: test, user: %[3]s}
clusters:
- name: test
  cluster: {server: %[1]q, certificate-authority: %[2]q}
users:
- name: %[3]s
  user: {token: %[4]s}
`, server, ca, user, token)
	return replace(path, text)
}

// replace writes a file as a whole: who waits for it never reads half of it.
func replace(path, text string) error {
	beside := path + ".new"
	if err := os.WriteFile(beside, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(beside, path)
}

// ensureKey makes the key that service account tokens are signed with, unless a former run has.
func ensureKey(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return replace(path, string(pem.EncodeToMemory(&block)))
}

// ensureToken gives the token in the file, and makes one where there is none.
func ensureToken(path string) (string, error) {
	if token, err := os.ReadFile(path); err == nil {
		return string(token), nil
	}
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	token := "t" + hex.EncodeToString(random) // a letter first: else YAML might read a number
	return token, replace(path, token)
}

func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func must(err error) {
	if err != nil {
		fail(1, err)
	}
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, "kubeapiserver:", err)
	os.Exit(code)
}
