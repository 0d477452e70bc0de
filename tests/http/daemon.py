"""A daemon on a free port, for the tests beside this file."""
import http.client, os, re, signal, subprocess, tempfile


class Daemon:
    def __init__(self, *options):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([os.environ["SWD"], "--listen", "127.0.0.1:0", *options],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.port = int(re.search(r"port (\d+)", self.process.stdout.readline()).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def ask(self, method, path, body=None, **headers):
        """(status, headers, body)"""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        c.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, r.headers, data

    def stop(self):
        """Exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20)
