//! The functions of NVRTC, in the library that was found. cudarc has them too, but looks for the library itself, by names
//! under which another one may lie on the loader's path.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;

use libloading::os::unix::Library;

use super::super::error::DeviceError;

/// What every function returns; 0 is success (nvrtc.h).
type Code = c_int;
/// `NVRTC_ERROR_COMPILATION`: the log says why.
pub const DOES_NOT_COMPILE: Code = 6;

type Handle = *mut std::ffi::c_void;
type Sized = unsafe extern "C" fn(Handle, *mut usize) -> Code;
type Written = unsafe extern "C" fn(Handle, *mut c_char) -> Code;
type Create = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> Code;

/// As nvrtc.h declares them.
pub struct Calls {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code,
    arch_count: unsafe extern "C" fn(*mut c_int) -> Code,
    archs: unsafe extern "C" fn(*mut c_int) -> Code,
    error: unsafe extern "C" fn(Code) -> *const c_char,
    create: Create,
    destroy: unsafe extern "C" fn(*mut Handle) -> Code,
    compile: unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Code,
    ptx: (Sized, Written),
    code: (Sized, Written),
    log: (Sized, Written),
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").finish_non_exhaustive()
    }
}

impl Calls {
    /// Those of this library, which stays loaded for good.
    pub fn of(library: Library) -> Result<Calls, libloading::Error> {
        // SAFETY: nvrtc.h declares the functions so.
        let calls = unsafe {
            Calls {
                version: *library.get(b"nvrtcVersion\0")?,
                arch_count: *library.get(b"nvrtcGetNumSupportedArchs\0")?,
                archs: *library.get(b"nvrtcGetSupportedArchs\0")?,
                error: *library.get(b"nvrtcGetErrorString\0")?,
                create: *library.get(b"nvrtcCreateProgram\0")?,
                destroy: *library.get(b"nvrtcDestroyProgram\0")?,
                compile: *library.get(b"nvrtcCompileProgram\0")?,
                ptx: (*library.get(b"nvrtcGetPTXSize\0")?, *library.get(b"nvrtcGetPTX\0")?),
                code: (*library.get(b"nvrtcGetCUBINSize\0")?, *library.get(b"nvrtcGetCUBIN\0")?),
                log: (*library.get(b"nvrtcGetProgramLogSize\0")?, *library.get(b"nvrtcGetProgramLog\0")?),
            }
        };
        std::mem::forget(library);
        Ok(calls)
    }

    pub fn version(&self) -> Result<(c_int, c_int), Code> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: writes two numbers to places of ours.
        done(unsafe { (self.version)(&raw mut major, &raw mut minor) })?;
        Ok((major, minor))
    }

    /// The compute capabilities that it knows: 90 is 9.0.
    pub fn archs(&self) -> Result<Vec<c_int>, Code> {
        let mut count = 0;
        // SAFETY: writes one number to a place of ours.
        done(unsafe { (self.arch_count)(&raw mut count) })?;
        let mut numbers = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: writes as many numbers as it said before.
        done(unsafe { (self.archs)(numbers.as_mut_ptr()) })?;
        Ok(numbers)
    }

    pub fn program(&'static self, text: CString, file: &CStr) -> Result<Program<'static>, Code> {
        let mut handle = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: two texts that end with a NUL, no headers, and a place of ours for the handle.
        done(unsafe { (self.create)(&raw mut handle, text.as_ptr(), file.as_ptr(), 0, none, none) })?;
        Ok(Program { calls: self, handle, _text: text })
    }

    /// What a code means for a kernel.
    pub fn failure(&self, kernel: &str, code: Code) -> DeviceError {
        // SAFETY: gives a text that is never freed, for any code.
        let reason = unsafe { CStr::from_ptr((self.error)(code)) }.to_string_lossy().into_owned();
        DeviceError::Compiler { kernel: kernel.to_owned(), reason }
    }
}

fn done(code: Code) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// A source on its way.
#[derive(Debug)]
pub struct Program<'a> {
    calls: &'a Calls,
    handle: Handle,
    /// The program may refer to it.
    _text: CString,
}

impl Program<'_> {
    pub fn compile(&self, options: &[CString]) -> Result<(), Code> {
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program is alive; as many texts that end with a NUL as are said.
        done(unsafe { (self.calls.compile)(self.handle, options.len() as c_int, options.as_ptr()) })
    }

    /// With a NUL at its end, as the log.
    pub fn ptx(&self) -> Result<Vec<u8>, Code> {
        self.written(self.calls.ptx)
    }

    pub fn machine_code(&self) -> Result<Vec<u8>, Code> {
        self.written(self.calls.code)
    }

    pub fn log(&self) -> Result<Vec<u8>, Code> {
        self.written(self.calls.log)
    }

    fn written(&self, (size, write): (Sized, Written)) -> Result<Vec<u8>, Code> {
        let mut bytes = 0;
        // SAFETY: the program is alive; writes one number to a place of ours.
        done(unsafe { size(self.handle, &raw mut bytes) })?;
        let mut text = vec![0u8; bytes];
        // SAFETY: writes as many bytes as it said before.
        done(unsafe { write(self.handle, text.as_mut_ptr().cast()) })?;
        Ok(text)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `Calls::program` and not used again. A failure here has nobody to go to.
        unsafe { (self.calls.destroy)(&raw mut self.handle) };
    }
}
