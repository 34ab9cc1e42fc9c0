//! NVRTC, CUDA's compiler as a library: sources in, PTX or machine code out. Needs no GPU.

mod calls;

use std::ffi::{CStr, CString, c_int};
use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;

use calls::{Calls, Program};

use super::arch::Arch;
use super::error::DeviceError;
use super::library::{compilers, looked};
use super::source::Source;

/// The version of NVRTC, or of CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    major: i32,
    minor: i32,
}

impl Version {
    pub(super) const fn new(major: i32, minor: i32) -> Version {
        Version { major, minor }
    }

    /// From one number, as CUDA counts: 13.2 is 13020.
    pub const fn of_number(number: i32) -> Version {
        Version::new(number / 1000, number % 1000 / 10)
    }

    pub const fn major(self) -> i32 {
        self.major
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The first that there is, or what is wrong with each.
fn first<T>(found: impl Iterator<Item = Result<T, libloading::Error>>) -> Result<T, Vec<String>> {
    let mut reasons = Vec::new();
    for found in found {
        match found {
            Ok(found) => return Ok(found),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(reasons)
}

/// Why there is no compiler, where these are broken.
fn none(reasons: &[String], looked: Vec<PathBuf>) -> DeviceError {
    match reasons {
        [] => DeviceError::NoCompiler { looked },
        reasons => DeviceError::BrokenCompiler { reasons: reasons.join("; ") },
    }
}

/// The compiler, once it has been found.
#[derive(Debug, Clone, Copy)]
pub struct Compiler {
    calls: &'static Calls,
    version: Version,
}

impl Compiler {
    /// Finds the library: beside libtorch, in `$CUDA_HOME`, or by the system's loader. The first that can be loaded is
    /// taken, and kept for as long as the process lives.
    ///
    /// # Errors
    /// Where there is none; where those that there are cannot be loaded.
    pub fn find() -> Result<Compiler, DeviceError> {
        static FOUND: OnceLock<Result<Calls, Vec<String>>> = OnceLock::new();
        let found = FOUND.get_or_init(|| first(compilers().map(|library| library.and_then(Calls::of))));
        let calls = found.as_ref().map_err(|reasons| none(reasons, looked()))?;
        let (major, minor) = calls.version().map_err(|code| calls.failure("*", code))?;
        Ok(Compiler { calls, version: Version { major, minor } })
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// What a kernel for this card is compiled to.
    pub fn arch_for(&self, card: Arch) -> Result<Arch, DeviceError> {
        let known = self.known()?;
        let oldest = known.iter().copied().min().unwrap_or(card);
        card.best_of(&known).ok_or(DeviceError::OldCard { card, oldest })
    }

    fn known(&self) -> Result<Vec<Arch>, DeviceError> {
        let numbers = self.calls.archs().map_err(|code| self.calls.failure("*", code))?;
        let numbers = numbers.into_iter().filter_map(|number| u32::try_from(number).ok());
        Ok(numbers.map(Arch::from_number).collect())
    }

    /// Compiles to PTX.
    ///
    /// # Errors
    /// A source that does not compile comes back with the compiler's own messages.
    pub fn compile(&self, source: &Source, arch: Arch) -> Result<String, DeviceError> {
        let failed = |code| self.calls.failure(source.name, code);
        let program = self.compiled(source, arch, &options(source, arch))?;
        program.ptx().map(|ptx| text(&ptx)).map_err(failed)
    }

    /// Compiles to machine code for this card, which the driver need not know the compiler for; `None` where the compiler
    /// does not know cards of its generation.
    ///
    /// # Errors
    /// As for [`compile`](Compiler::compile).
    pub(super) fn machine_code(&self, source: &Source, card: Arch) -> Result<Option<Vec<u8>>, DeviceError> {
        let Some(arch) = card.code_of(&self.known()?) else { return Ok(None) };
        let target = format!("sm_{}{}", arch.major, arch.minor);
        let program = self.compiled(source, arch, &options_for(source, &target))?;
        program.machine_code().map(Some).map_err(|code| self.calls.failure(source.name, code))
    }

    fn compiled(
        &self,
        source: &Source,
        arch: Arch,
        options: &[String],
    ) -> Result<Program<'static>, DeviceError> {
        let refused = |_| DeviceError::Compiler {
            kernel: source.name.to_owned(),
            reason: "a source or an option holds a NUL".to_owned(),
        };
        let file = CString::new(format!("{}.cu", source.name)).map_err(refused)?;
        let text = CString::new(source.text).map_err(refused)?;
        let options: Vec<CString> = options
            .iter()
            .map(|option| CString::new(option.as_str()))
            .collect::<Result<_, _>>()
            .map_err(refused)?;
        let failed = |code: c_int| self.calls.failure(source.name, code);
        let program = self.calls.program(text, &file).map_err(failed)?;
        match program.compile(&options) {
            Ok(()) => Ok(program),
            Err(calls::DOES_NOT_COMPILE) => Err(DeviceError::Source {
                kernel: source.name.to_owned(),
                arch: arch.to_string(),
                log: program
                    .log()
                    .map_or_else(|code| format!("(no log: code {code})"), |log| self::text(&log)),
            }),
            Err(code) => Err(failed(code)),
        }
    }
}

/// Without contraction, so that a kernel computes what its source says, and the same on every card.
pub(super) fn options(source: &Source, arch: Arch) -> Vec<String> {
    options_for(source, &arch.to_string())
}

fn options_for(source: &Source, target: &str) -> Vec<String> {
    let common =
        [format!("--gpu-architecture={target}"), "--std=c++17".to_owned(), "--fmad=false".to_owned()];
    common.into_iter().chain(source.defines()).collect()
}

/// Up to the NUL at the end.
fn text(bytes: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes);
    String::from_utf8_lossy(text).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &'static str) -> Source {
        Source { name: "made_up", text, defines: vec![("SIZE", 3)] }
    }

    #[test]
    fn a_compiler_that_is_broken_is_told_from_none() {
        // SAFETY: no library.
        let broken = || unsafe { libloading::os::unix::Library::new("/dev/null") }.map(|_| 0);
        assert_eq!(first([broken(), Ok(7)].into_iter()), Ok(7), "the next one does");
        let reasons = first([broken()].into_iter()).unwrap_err();
        let error = none(&reasons, Vec::new()).to_string();
        assert!(error.contains("/dev/null") && error.contains("cannot be loaded"), "{error}");
        let nothing = first([].into_iter().map(|()| broken())).unwrap_err();
        assert!(matches!(none(&nothing, Vec::new()), DeviceError::NoCompiler { .. }));
    }

    #[test]
    fn a_source_that_does_not_compile_shows_the_compilers_messages() {
        let broken = source("extern \"C\" __global__ void f(int* p) {\n  *p = misspelt;\n}");
        let error = Compiler::find().unwrap().compile(&broken, Arch::new(8, 0)).unwrap_err();
        assert!(matches!(error, DeviceError::Source { .. }), "{error:?}");
        let message = error.to_string();
        for words in ["kernels/made_up.cu", "compute_80", "made_up.cu(2)", "\"misspelt\" is undefined"] {
            assert!(message.contains(words), "{words}: {message}");
        }
    }

    #[test]
    fn what_is_defined_reaches_the_source() {
        let sized = source("extern \"C\" __global__ void f(int* p) { *p = SIZE + 4; }");
        let ptx = Compiler::find().unwrap().compile(&sized, Arch::new(9, 0)).unwrap();
        assert!(ptx.contains(".visible .entry f(") && ptx.contains(".target sm_90"), "{ptx}");
        assert!(ptx.contains(", 7;"), "{ptx}");
    }

    #[test]
    fn an_arch_that_the_compiler_does_not_know_is_an_error_and_no_panic() {
        let error = Compiler::find().unwrap().compile(&Source::fma(), Arch::new(1, 0)).unwrap_err();
        assert!(error.to_string().contains("kernels/fma.cu"), "{error}");
    }

    #[test]
    fn cards_are_matched_with_what_the_compiler_knows() {
        let compiler = Compiler::find().unwrap();
        assert_eq!(compiler.arch_for(Arch::new(9, 0)).unwrap(), Arch::new(9, 0));
        let error = compiler.arch_for(Arch::new(3, 5)).unwrap_err().to_string();
        assert!(
            error.contains("compute capability 3.5 is older") && error.contains("--adamw fused"),
            "{error}"
        );
        assert!(!error.contains("compute_"), "{error}");
    }

    #[test]
    fn machine_code_is_an_object_file_for_the_card() {
        let compiler = Compiler::find().unwrap();
        let code = compiler.machine_code(&Source::fma(), Arch::new(9, 0)).unwrap().unwrap();
        assert!(code.starts_with(b"\x7fELF"));
        assert!(code.windows(15).any(|bytes| bytes == b".text.fma_peak\0"));
        assert_eq!(compiler.machine_code(&Source::fma(), Arch::new(3, 5)).unwrap(), None);
    }
}
