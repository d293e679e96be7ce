"""What goes wrong with Kubernetes' API. Every message is a sentence for the operator."""


class KubernetesError(Exception):
    """Any of the below."""


class CredentialsError(KubernetesError):
    """There is no cluster to ask, or no way to say who asks."""


class UnreachableError(KubernetesError):
    """Nothing answered, or the answer broke off."""


class MalformedError(KubernetesError):
    """The answer is not what Kubernetes says."""


class ApiError(KubernetesError):
    """The server refused: an HTTP status of 300 or more, or an ERROR event on a watch.

    `reason` is Kubernetes' own word ("Forbidden", "Expired"); `retry_after_s` is 0 where the server did not say.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(status, reason, message, retry_after_s)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        named = f"{self.status} {self.reason}".strip()
        return f"{named}: {self.message}" if self.message else named

    @property
    def expired(self) -> bool:
        """The resource version, or the continue token, is older than what the server remembers."""
        return self.status == 410 or self.reason in ("Expired", "Gone")

    @property
    def passing(self) -> bool:
        """The server cannot answer now, whatever it is asked: no fault of the question, nor of who asks."""
        return self.status >= 500 or self.status == 429
