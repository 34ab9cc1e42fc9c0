//! NVRTC, CUDA's compiler as a library: sources in, PTX out. Needs no GPU.

use std::ffi::{CStr, CString, c_char};
use std::fmt;

use cudarc::nvrtc::result::{self, NvrtcError};
use cudarc::nvrtc::sys;

use super::arch::Arch;
use super::error::DeviceError;
use super::library::load_compiler;
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
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The compiler, once it has been found.
#[derive(Debug, Clone, Copy)]
pub struct Compiler {
    version: Version,
}

impl Compiler {
    /// Finds the library: beside libtorch, in `$CUDA_HOME`, or by the system's loader.
    pub fn find() -> Result<Compiler, DeviceError> {
        load_compiler()?;
        let mut version = Version { major: 0, minor: 0 };
        // SAFETY: writes two numbers to places of ours.
        let code = unsafe { sys::nvrtcVersion(&raw mut version.major, &raw mut version.minor) };
        code.result().map_err(|reason| DeviceError::Compiler { kernel: "*".to_owned(), reason })?;
        Ok(Compiler { version })
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// What a kernel for this card is compiled to.
    pub fn arch_for(&self, card: Arch) -> Result<Arch, DeviceError> {
        let known = self.known()?;
        card.best_of(&known).ok_or_else(|| DeviceError::OldCard {
            card: card.to_string(),
            oldest: known.iter().min().map_or_else(|| "none".to_owned(), Arch::to_string),
        })
    }

    fn known(&self) -> Result<Vec<Arch>, DeviceError> {
        let failed = |reason| DeviceError::Compiler { kernel: "*".to_owned(), reason };
        let mut count = 0;
        // SAFETY: writes one number to a place of ours.
        unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut count) }.result().map_err(failed)?;
        let mut numbers = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: writes as many numbers as it said before.
        unsafe { sys::nvrtcGetSupportedArchs(numbers.as_mut_ptr()) }.result().map_err(failed)?;
        Ok(numbers
            .into_iter()
            .filter_map(|number| u32::try_from(number).ok())
            .map(Arch::from_number)
            .collect())
    }

    /// Compiles to PTX.
    ///
    /// # Errors
    /// A source that does not compile comes back with the compiler's own messages.
    pub fn compile(&self, source: &Source, arch: Arch) -> Result<String, DeviceError> {
        let failed = |reason| DeviceError::Compiler { kernel: source.name.to_owned(), reason };
        let program = Program::new(source).map_err(failed)?;
        // SAFETY: the program is alive, and the options hold no NUL, on which cudarc would panic.
        match unsafe { result::compile_program(program.raw, &options(source, arch)) } {
            Ok(()) => program.ptx().map_err(failed),
            Err(NvrtcError(sys::nvrtcResult::NVRTC_ERROR_COMPILATION)) => Err(DeviceError::Source {
                kernel: source.name.to_owned(),
                arch: arch.to_string(),
                log: program.log(),
            }),
            Err(reason) => Err(failed(reason)),
        }
    }
}

/// Without contraction, so that a kernel computes what its source says, and the same on every card.
pub(super) fn options(source: &Source, arch: Arch) -> Vec<String> {
    let common = [format!("--gpu-architecture={arch}"), "--std=c++17".to_owned(), "--fmad=false".to_owned()];
    common.into_iter().chain(source.defines()).collect()
}

struct Program {
    raw: sys::nvrtcProgram,
    /// The program may refer to it.
    _text: CString,
}

impl Program {
    fn new(source: &Source) -> Result<Program, NvrtcError> {
        let refused = |_| NvrtcError(sys::nvrtcResult::NVRTC_ERROR_INVALID_INPUT);
        let text = CString::new(source.text).map_err(refused)?;
        let file = CString::new(format!("{}.cu", source.name)).map_err(refused)?;
        let raw = result::create_program(&text, Some(&file))?;
        Ok(Program { raw, _text: text })
    }

    fn ptx(&self) -> Result<String, NvrtcError> {
        // SAFETY: the program is alive and has been compiled.
        unsafe { result::get_ptx(self.raw) }.map(|ptx| text(&ptx))
    }

    fn log(&self) -> String {
        // SAFETY: the program is alive.
        let log = unsafe { result::get_program_log(self.raw) };
        log.map_or_else(|error| format!("(no log: {error})"), |log| text(&log))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: made by `new` and not used again. A failure here has nobody to go to.
        let _ = unsafe { result::destroy_program(self.raw) };
    }
}

/// Up to the NUL at the end.
fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|&char| char.cast_unsigned()).collect();
    let text = CStr::from_bytes_until_nul(&bytes).map_or(&bytes[..], CStr::to_bytes);
    String::from_utf8_lossy(text).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &'static str) -> Source {
        Source { name: "made_up", text, defines: vec![("SIZE", 3)] }
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
        assert!(error.contains("compute_35") && error.contains("--adamw fused"), "{error}");
    }
}
