//! Links and files that were put where a daemon makes its folder or its socket.

use super::common::stderr;
use super::folders::{AS_USER, may_play, within};
use std::fmt::Write;

/// Makes a foreign folder with a file, which nothing may change. What `find` shows of a file
/// changes with its owner, mode, content and links to it.
const VICTIM: &str = "mkdir /tmp/victim; echo kept > /tmp/victim/file; \
    look() { find /tmp/victim /tmp/place -printf \"%p %y %m %U %i %s %C@ %l\\n\" 2>/dev/null; }";

/// Shell of a daemon that comes up, with its output, in some folder; `$1` onwards starts it.
const COMES_UP: &str = "comes_up() { \
    \"$@\" daemon 2>/tmp/said & pid=$!; \
    for i in $(seq 300); do \"$@\" status >/dev/null 2>&1 && break; sleep 0.1; done; \
    \"$@\" status >/dev/null && echo up; kill $pid; wait $pid; echo ended $?; }";

/// Things that are no sockets, each by the commands that make it at `$place`.
const PLANTED: [(&str, &str); 5] = [
    ("a file", "echo kept > $place"),
    ("a folder", "mkdir $place"),
    ("a link to a file", "ln -s /tmp/victim/file $place"),
    ("a link to a folder", "ln -s /tmp/victim $place"),
    ("a dangling link", "ln -s /tmp/victim/none $place"),
];

fn said_by(script: &str) -> String {
    let output = within(script);
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    let _ = write!(said, "{}", stderr(&output));
    said
}

#[test]
fn planted_folder_of_a_user_is_not_followed() {
    if !may_play() {
        return;
    }
    let victims = [
        ("another's folder", "", "/tmp/victim"),
        ("another's file", "", "/tmp/victim/file"),
        (
            "the user's own folder",
            "chown -R 65534 /tmp/victim; chmod 700 /tmp/victim;",
            "/tmp/victim",
        ),
    ];
    for (what, own, target) in victims {
        let script = format!(
            "{VICTIM}; {own} {COMES_UP}; mkdir /tmp/place; ln -s {target} /tmp/place/consort; \
             chown -h 65534 /tmp/place /tmp/place/consort; before=$(look); \
             comes_up {AS_USER} env XDG_RUNTIME_DIR=/tmp/place \"$C\"; \
             [ \"$(look)\" = \"$before\" ] && echo untouched; \
             [ -d /tmp/consort-65534 ] && echo elsewhere; cat /tmp/said"
        );
        let said = said_by(&script);
        let expected = "up\nended 0\nuntouched\nelsewhere\n";
        assert!(said.starts_with(expected), "{what}: {said}");
    }
}

#[test]
fn planted_folder_of_root_is_not_opened_to_others() {
    if !may_play() {
        return;
    }
    // Root's daemon lets others pass through its folder.
    let script = format!(
        "{VICTIM}; {COMES_UP}; chmod 700 /tmp/victim; mount -t tmpfs none /run; \
         ln -s /tmp/victim /run/consort; before=$(look); comes_up \"$C\"; \
         [ \"$(look)\" = \"$before\" ] && echo untouched; \
         [ -L /run/consort ] && echo still a link; cat /tmp/said"
    );
    let said = said_by(&script);
    let expected = "up\nended 0\nuntouched\nstill a link\n";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn what_is_no_socket_is_neither_followed_nor_removed() {
    if !may_play() {
        return;
    }
    for (what, plant) in PLANTED {
        // At the usual place, and where the user wants it.
        for (name, args) in [("consort/control.sock", ""), ("named", "--socket $place")] {
            let script = format!(
                "{VICTIM}; mkdir /tmp/place; mkdir -m 700 /tmp/place/consort; \
                 place=/tmp/place/{name}; {plant}; \
                 chown -hR 65534 /tmp/place; before=$(look); \
                 timeout 20 {AS_USER} env XDG_RUNTIME_DIR=/tmp/place \"$C\" daemon {args} \
                     2>/tmp/said; echo ended $?; \
                 [ \"$(look | grep -v /probe)\" = \"$before\" ] && echo untouched; cat /tmp/said; look"
            );
            let said = said_by(&script);
            assert!(said.starts_with("ended 1\n"), "{what} {name}: {said}");
            assert!(
                said.contains("is not a socket is there; name another path"),
                "{what} {name}: {said}"
            );
            assert!(
                said.contains(&format!("/tmp/place/{name}")),
                "{what} {name}: {said}"
            );
            assert!(said.contains("untouched"), "{what} {name}: {said}");
        }
    }
}
