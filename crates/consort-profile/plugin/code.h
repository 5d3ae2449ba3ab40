/* Instructions that QEMU before 8.0 must be asked about with care.
 *
 * An instruction that ends its block by way of QEMU's own functions keeps a pointer to its
 * callbacks, which the next reset frees. What accesses memory by such a function and has no
 * callback of its own follows that pointer: with several threads, any atomic update does.
 */
#ifndef CONSORT_CODE_H
#define CONSORT_CODE_H

#include <stdbool.h>
#include <stddef.h>

/* A system call touches no memory itself. */
static bool is_system_call(const unsigned char *code, size_t size)
{
    return size == 2 && code[0] == 0x0f && code[1] == 0x05;
}

static bool is_prefix(unsigned char byte)
{
    switch (byte) {
    case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: case 0x66: case 0x67:
    case 0xf0: case 0xf2: case 0xf3:
        return true;
    default:
        return (byte & 0xf0) == 0x40;
    }
}

/* VPMASKMOV, VMASKMOVP and the gathers. */
static bool is_masked(unsigned char operation)
{
    return (operation >= 0x2c && operation <= 0x2f) || operation == 0x8c || operation == 0x8e ||
           (operation >= 0x90 && operation <= 0x93);
}

/* Whether an instruction accesses memory by a function of QEMU's: an atomic update, x87, the
 * saving of states, or what is masked. Others than do it are in this, too. */
static bool is_by_function(const unsigned char *code, size_t size)
{
    bool locked = false;
    for (; size > 1 && is_prefix(code[0]); code++, size--)
        locked |= code[0] == 0xf0;
    if (locked || size < 2)
        return locked;
    if (code[0] == 0x86 || code[0] == 0x87 || (code[0] & 0xf8) == 0xd8)
        return true;
    if (code[0] == 0x0f)
        return code[1] == 0xae || code[1] == 0xc7 || code[1] == 0xf7;
    return code[0] == 0xc4 && size > 3 && (code[1] & 0x1f) == 2 && is_masked(code[3]);
}

#endif
