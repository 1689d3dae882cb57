"""The whole platform on one machine: the rendered Jobs, run as processes.

:mod:`job` decides as Kubernetes' Job controller does, :mod:`quota` as Kueue does, :mod:`pod` does what a kubelet does;
:mod:`runner` joins them, and :mod:`data` keeps what they know in a folder.
"""
