! Loops of Fortran: `loops LOOP rate KIB_SMALL KIB_LARGE | run KIB SECONDS`.
program loops
  implicit none
  integer, parameter :: slices = 15, chunk = 1024
  real(8), parameter :: slice_s = 0.03d0
  type work
    real(8), allocatable :: a(:), b(:), c(:)
    integer(8) :: at = 1, state = 88172645463325252_8
  end type
  type(work) :: small, large
  character(32) :: name, verb, first, second
  integer(8) :: kib_first, kib_second
  real(8) :: seconds, ratios(slices), before, between, swap
  integer :: i, j
  real(8) :: total = 0
  call get_command_argument(1, name)
  call get_command_argument(2, verb)
  call get_command_argument(3, first)
  call get_command_argument(4, second)
  read (first, *) kib_first
  call prepare(small, kib_first)
  if (verb == 'run') then
    read (second, *) seconds
    before = rate(small, seconds)
    stop
  end if
  read (second, *) kib_second
  call prepare(large, kib_second)
  before = rate(small, slice_s) + rate(large, slice_s)
  do i = 1, slices
    before = rate(small, slice_s)
    between = rate(large, 2 * slice_s)
    ratios(i) = between / ((before + rate(small, slice_s)) / 2)
  end do
  do i = 1, slices - 1
    do j = i + 1, slices
      if (ratios(j) < ratios(i)) then
        swap = ratios(i)
        ratios(i) = ratios(j)
        ratios(j) = swap
      end if
    end do
  end do
  print *, ratios(slices / 2 + 1)
contains
  subroutine prepare(w, kib)
    type(work), intent(inout) :: w
    integer(8), intent(in) :: kib
    integer(8) :: n
    n = max(kib * 1024 / 8 / 3 / chunk, 1_8) * chunk
    allocate (w%a(n), w%b(n), w%c(n))
    w%a = 1
    w%b = 2
    w%c = 3
  end subroutine
  real(8) function rate(w, time)
    type(work), intent(inout) :: w
    real(8), intent(in) :: time
    real(8) :: start, now, done
    integer :: k
    call cpu_time(start)
    now = start
    done = 0
    do while (now - start < time)
      do k = 1, 8
        call step(w)
      end do
      done = done + 8
      call cpu_time(now)
    end do
    rate = done / (now - start)
  end function
  subroutine step(w)
    type(work), intent(inout) :: w
    integer(8) :: k, p, to
    to = w%at + chunk - 1
    if (name == 'triad') then
      w%a(w%at:to) = w%b(w%at:to) + 3.0d0 * w%c(w%at:to)
    else if (name == 'norm') then
      total = total + sqrt(sum(w%a(w%at:to) * w%b(w%at:to)))
    else
      do k = 1, chunk
        w%state = ieor(w%state, ishft(w%state, 13))
        w%state = ieor(w%state, ishft(w%state, -7))
        w%state = ieor(w%state, ishft(w%state, 17))
        p = 1 + modulo(w%state, size(w%a, kind=8))
        total = total + w%a(p) * 0.5d0
      end do
    end if
    w%at = merge(1_8, to + 1, to + chunk > size(w%a, kind=8))
  end subroutine
end program
