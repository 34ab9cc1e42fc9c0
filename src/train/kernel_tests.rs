//! The kernel's way of updating, as far as a CPU can take it: nothing here is launched.

use super::super::adamw::AdamW;
use super::super::shim::raw;
use super::*;

fn config(block_size: Option<u32>, tile_size: Option<u32>) -> AdamWConfig {
    AdamWConfig { kind: AdamWKind::Kernel, block_size, tile_size, ..AdamWConfig::default() }
}

#[test]
fn sizes_that_are_not_offered_are_named_by_their_flags() {
    assert_eq!(config(None, None).tiling().unwrap(), Tiling::default());
    assert_eq!(config(Some(512), None).tiling().unwrap().block_size(), 512);
    for (config, message) in [
        (config(Some(96), None), "--block-size 96: allowed: 128, 256, 512, 1024"),
        (config(None, Some(5)), "--tile-size 5: allowed: 4, 8, 16, 32"),
        (config(Some(1024), Some(32)), "--tile-size 32: allowed with 1024 threads a block: up to 8"),
        (
            AdamWConfig { kind: AdamWKind::Fused, ..config(Some(256), None) },
            "--block-size 256: is for --adamw kernel",
        ),
    ] {
        let error = config.tiling().unwrap_err();
        assert!(error.is_input() && error.to_string().starts_with(message), "{error}");
    }
}

#[test]
fn a_cpu_has_no_kernel_and_the_error_says_what_it_has() {
    let parameter = Tensor::zeros([3], tch::kind::FLOAT_CPU);
    let error = AdamW::new(config(None, None), vec![parameter], None).unwrap_err();
    assert!(error.is_input());
    let message = error.to_string();
    for words in ["--adamw kernel", "--device cuda", "fused, foreach, loop"] {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn types_that_the_kernel_does_not_know_are_named() {
    for (parameter, state, masters) in [
        (Kind::Half, Kind::Half, false),
        (Kind::Double, Kind::Double, false),
        (Kind::Float, Kind::Float, true),
    ] {
        let message = storage(parameter, state, masters).unwrap_err().to_string();
        assert!(message.contains(&format!("{parameter:?}")) && message.contains("fused"), "{message}");
    }
}

const ON_THE_CPU: i32 = -1;

fn f32_on_the_cpu() -> Layout {
    Layout::new(Storage::F32, ON_THE_CPU)
}

/// The shim's checks hold for any device; only a launch needs a GPU.
#[test]
fn operands_are_where_the_tensors_lie() {
    let new = |count: i64| Tensor::ones([count], tch::kind::FLOAT_CPU);
    let parameters = [3, 0, 5].map(|count| new(count).set_requires_grad(true));
    for parameter in &parameters {
        parameter.sum(Kind::Float).backward();
    }
    let states: Vec<[Tensor; 3]> = [3, 0, 5].map(|count| [new(count), new(count), new(1)]).into();
    let of_place =
        |place: usize| states.iter().map(|state| state[place].as_ptr() as RawTensor).collect::<Vec<_>>();
    let mut lists = Lists {
        parameters: parameters.iter().map(|parameter| parameter.as_ptr() as RawTensor).collect(),
        masters: None,
        exp_avgs: of_place(0),
        exp_avg_sqs: of_place(1),
        steps: of_place(2),
    };
    let found = operands(&lists, &f32_on_the_cpu()).unwrap();
    for ((operands, parameter), states) in found.iter().zip(&parameters).zip(&states) {
        let addresses = [parameter, &parameter.grad(), &states[0], &states[1], &states[2]]
            .map(|tensor| tensor.data_ptr() as u64);
        let Operands { param, grad, exp_avg, exp_avg_sq, step, .. } = *operands;
        assert_eq!([param, grad, exp_avg, exp_avg_sq, step], addresses);
        assert_eq!((operands.numel, operands.master), (parameter.numel() as u64, 0));
    }
    // What the kernel would read wrongly is refused: here a state that is a column.
    let column = Tensor::ones([3, 2], tch::kind::FLOAT_CPU).select(1, 0);
    lists.exp_avgs[0] = column.as_ptr() as RawTensor;
    let error = operands(&lists, &f32_on_the_cpu()).unwrap_err().to_string();
    assert!(error.contains("exp_avg") && error.contains("contiguous"), "{error}");
    lists.exp_avgs[0] = states[2][0].as_ptr() as RawTensor;
    let error = operands(&lists, &f32_on_the_cpu()).unwrap_err().to_string();
    assert!(error.contains("exp_avg has 5 elements") && error.contains("3"), "{error}");
}

/// One parameter's tensors, each of a type of its own.
struct Kinds {
    parameter: Kind,
    states: [Kind; 2],
    step: Kind,
    master: Option<Kind>,
}

const F32: Kinds =
    Kinds { parameter: Kind::Float, states: [Kind::Float; 2], step: Kind::Float, master: None };
const BF16: Kinds = Kinds { parameter: Kind::BFloat16, states: [Kind::BFloat16; 2], ..F32 };

/// What the shim says of parameters of these types, to a kernel of that layout.
fn told(all: &[Kinds], layout: Layout) -> Result<usize, String> {
    let new = |count: i64, kind| Tensor::ones([count], (kind, Device::Cpu));
    let parameters: Vec<_> =
        all.iter().map(|kinds| new(3, kinds.parameter).set_requires_grad(true)).collect();
    parameters.iter().for_each(|parameter| parameter.sum(parameter.kind()).backward());
    let list = |kind: &dyn Fn(&Kinds) -> Kind, count| -> Vec<Tensor> {
        all.iter().map(|kinds| new(count, kind(kinds))).collect()
    };
    let exp_avgs = list(&|kinds| kinds.states[0], 3);
    let exp_avg_sqs = list(&|kinds| kinds.states[1], 3);
    let steps = list(&|kinds| kinds.step, 1);
    let masters: Vec<_> = all.iter().filter_map(|kinds| kinds.master).map(|kind| new(3, kind)).collect();
    let lists = Lists {
        parameters: raw(&parameters),
        masters: (!masters.is_empty()).then(|| raw(&masters)),
        exp_avgs: raw(&exp_avgs),
        exp_avg_sqs: raw(&exp_avg_sqs),
        steps: raw(&steps),
    };
    operands(&lists, &layout).map(|operands| operands.len()).map_err(|error| error.to_string())
}

#[test]
fn tensors_of_other_types_than_the_kernel_was_loaded_for_are_refused() {
    let with_masters = || Kinds { master: Some(Kind::Float), states: F32.states, ..BF16 };
    let fits = [
        (F32, Storage::F32),
        (BF16, Storage::Bf16),
        (Kinds { states: F32.states, ..BF16 }, Storage::Bf16F32States),
        (with_masters(), Storage::Bf16Masters),
    ];
    for (kinds, storage) in fits {
        assert_eq!(told(&[kinds], Layout::new(storage, ON_THE_CPU)), Ok(1), "{storage:?}");
    }
    for (all, storage, words) in [
        (vec![F32, BF16], Storage::F32, "parameter is of BFloat16, and the kernel was loaded for Float"),
        (vec![BF16, F32], Storage::Bf16, "parameter is of Float, and the kernel was loaded for BFloat16"),
        (vec![BF16], Storage::Bf16F32States, "exp_avg is of BFloat16"),
        (vec![Kinds { states: [Kind::Float, Kind::Half], ..F32 }], Storage::F32, "exp_avg_sq is of Half"),
        (vec![Kinds { step: Kind::Double, ..F32 }], Storage::F32, "step is of Double"),
        (
            vec![Kinds { master: Some(Kind::BFloat16), ..with_masters() }],
            Storage::Bf16Masters,
            "master is of",
        ),
        (vec![Kinds { states: F32.states, ..BF16 }], Storage::Bf16Masters, "with master weights"),
        (vec![with_masters()], Storage::Bf16F32States, "without master weights"),
    ] {
        let error = told(&all, Layout::new(storage, ON_THE_CPU)).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn tensors_elsewhere_than_on_the_kernels_gpu_are_refused() {
    let error = told(&[F32], Layout::new(Storage::F32, 1)).unwrap_err();
    assert!(error.contains("parameter is on cpu, and the kernel was loaded for cuda:1"), "{error}");
}

/// Backward refuses to use what was changed after it was saved, if it is told.
#[test]
fn libtorch_is_told_that_the_parameters_change() {
    let parameter = Tensor::ones([4], tch::kind::FLOAT_CPU).set_requires_grad(true);
    let squared = (&parameter * &parameter).sum(Kind::Float);
    (&parameter * 1.0).sum(Kind::Float).backward();
    let states = [4, 4, 1].map(|count| Tensor::zeros([count], tch::kind::FLOAT_CPU));
    let [exp_avgs, exp_avg_sqs, steps] = states.each_ref().map(|state| vec![state.as_ptr() as RawTensor]);
    let parameters = vec![parameter.as_ptr() as RawTensor];
    let lists = Lists { parameters, masters: None, exp_avgs, exp_avg_sqs, steps };
    operands(&lists, &f32_on_the_cpu()).unwrap();
    let error = squared.f_backward().unwrap_err().to_string();
    assert!(error.contains("modified by an inplace operation"), "{error}");
}
