/* Run by smpirun: each rank prints the simulated seconds that one MPI_Allreduce of argv[1] floats took it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int count = atoi(argv[1]);
  float *in = SMPI_SHARED_MALLOC(count * sizeof(float)), *out = SMPI_SHARED_MALLOC(count * sizeof(float));
  double start = MPI_Wtime();
  MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  printf("%.17g\n", MPI_Wtime() - start);
  MPI_Finalize();
  return 0;
}
