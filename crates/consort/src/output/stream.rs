//! stdout, whose reader may go away.

use std::io::{self, ErrorKind, StdoutLock, Write};

/// stdout for results. What comes after its reader has gone, as with `consort policies | head -1`,
/// is dropped: a verb still ends with the status that its work deserves.
pub(crate) struct Stdout {
    stream: StdoutLock<'static>,
    gone: bool,
}

/// Takes stdout.
pub(crate) fn stdout() -> Stdout {
    Stdout {
        stream: io::stdout().lock(),
        gone: false,
    }
}

impl Stdout {
    fn write_unless_closed<T>(
        &mut self,
        otherwise: T,
        act: impl FnOnce(&mut StdoutLock<'static>) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.gone {
            return Ok(otherwise);
        }
        let result = act(&mut self.stream);
        self.gone = matches!(&result, Err(error) if error.kind() == ErrorKind::BrokenPipe);
        if self.gone { Ok(otherwise) } else { result }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_unless_closed(bytes.len(), |stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_unless_closed((), Write::flush)
    }
}
