"""Choice rules of libraries beside NCCL (``prediction/nccl``): which algorithm Gloo, MPICH, Open MPI or RCCL take for a call, and why."""
